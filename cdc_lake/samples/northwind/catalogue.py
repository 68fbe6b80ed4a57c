"""The product categories, and the products of each category with pack size and list price."""

from __future__ import annotations

CATEGORIES = (
    ("Drinks", "Teas, coffees, juices, ciders and beers"),
    ("Pantry", "Sauces, pickles, oils, spreads and spices"),
    ("Sweets", "Chocolate, biscuits, cakes and candied fruit"),
    ("Dairy", "Cheeses from cow, goat and sheep"),
    ("Grain", "Bread, pasta, rice and flour"),
    ("Meat", "Cured, smoked and fresh meat"),
    ("Greens", "Dried fruit, beans and mushrooms"),
    ("Sea", "Fish, shellfish and seaweed"),
)

_CATALOGUE = """
Drinks
Juniper Mist Tea | 20 boxes x 20 bags | 18.00
Harbour Porter | 24 bottles of 0.5 l | 14.00
Cloudberry Cordial | 12 bottles of 0.7 l | 19.00
Old Cellar Cider | 12 bottles of 0.75 l | 15.00
Monsoon Roast Coffee | 16 tins of 500 g | 46.00
Marsh Hare Ale | 24 bottles of 355 ml | 14.00
Smoked Barley Brew | 24 bottles of 0.5 l | 7.75
Elderflower Fizz | 24 cans of 330 ml | 4.50
Abbey Vault Reserve 1971 | 6 bottles of 0.75 l | 261.50
Plum Kernel Spirit | 10 bottles of 0.5 l | 18.00
Lime Root Soda | 24 cans of 355 ml | 12.00
Night Watch Stout | 24 bottles of 0.5 l | 18.00
Pantry
Fenland Mint Jelly | 12 jars of 250 g | 10.00
Cedar Chili Mix | 48 jars of 170 g | 22.00
Gulf Stew Base | 36 boxes | 21.35
Hedgerow Preserve | 12 jars of 230 g | 25.00
Bog Cranberry Relish | 12 jars of 340 g | 40.00
Black Garlic Soy | 24 bottles of 250 ml | 15.50
Ember Pepper Sauce | 32 bottles of 60 ml | 21.05
Palm Syrup | 20 bags of 2 kg | 19.45
Yeast Spread No. 3 | 15 jars of 625 g | 43.90
Maple Sap Syrup | 24 bottles of 500 ml | 28.50
Creole Spice Rub | 24 tins of 150 g | 17.00
Mustard of Three Seeds | 12 boxes | 13.00
Sweets
Tundra Meringue | 32 boxes of 500 g | 17.45
Lantern Biscuits | 10 boxes x 12 pieces | 9.20
Grand Duke Marmalade | 30 gift boxes | 81.00
Miller's Scones | 24 packs x 4 pieces | 10.00
Pear Drop Bears | 100 bags of 250 g | 31.25
Brook Nougat | 10 packs of 400 g | 14.00
Hazel Praline Tower | 25 boxes | 43.90
Rye Chocolate Bar | 50 bars of 100 g | 16.25
Saffron Sugar Pretzel | 24 boxes of 12 | 9.50
Almond Snow Wafers | 12 boxes of 350 g | 12.50
Carriage House Tart | 48 pies | 49.30
Midwinter Liquorice | 24 bags of 50 g | 20.00
Caramel Lace | 15 boxes of 300 g | 17.00
Dairy
Blue of the Ravine | 1 kg wheel | 21.00
Shepherd's Ash Round | 10 packs of 500 g | 38.00
Whey Brown Block | 500 g block | 2.50
Cave Aged Alpine | 5 kg wheel | 55.00
Rind-Washed Monk | 15 rounds of 300 g | 34.00
Ricotta of the Hills | 24 tubs of 250 g | 12.50
Herb Curd | 12 tubs of 500 g | 32.00
Smoked Twist | 24 packs of 200 g | 21.50
Snow Goat | 10 kg block | 36.00
Buffalo Pearls | 24 packs of 200 g | 34.80
Grain
Stone Oven Crisp | 24 packs of 500 g | 21.00
Thin Linen Crisp | 12 packs of 250 g | 9.00
Egg Ribbon Noodles | 32 packs of 1 kg | 14.00
Golden Grits | 20 bags of 500 g | 7.00
Potato Pillows | 24 packs of 250 g | 38.00
Hand-Cut Ravioli | 24 packs of 250 g | 19.50
Sunday Dumplings | 20 packs x 4 pieces | 33.25
Meat
Highland Beef Cut | 18 cuts of 500 g | 97.00
Ridge Lamb | 20 tins of 1 kg | 39.00
Winter Sausage | 50 bags x 30 pieces | 123.80
Corner Meat Pie | 48 pies | 32.80
Paddock Terrine | 16 pies | 7.45
Hunter's Pâté | 24 boxes x 2 pies | 24.00
Greens
Orchard Dried Pears | 12 packs of 1 kg | 30.00
Bean Curd Classic | 40 packs of 100 g | 23.25
Cellar Kraut | 25 tins of 825 g | 45.60
Mountain Apple Rings | 50 packs of 300 g | 53.00
Long Keep Tofu | 5 kg box | 10.00
Sea
Fjord Salmon Roe | 12 jars of 200 ml | 31.00
Kelp Sheets | 2 kg box | 6.00
Tiger Reef Tails | 16 packs of 1 kg | 62.50
Matjes in Dill | 10 jars of 200 g | 25.90
Salt Cured Sides | 12 packs of 500 g | 26.00
Smoked Kipper | 24 jars of 150 g | 9.50
Pickled Herring | 24 jars of 250 g | 12.00
Lagoon Clam Broth | 12 tins of 340 g | 9.65
Crab in Brine | 24 tins of 110 g | 18.40
Escargot Jar | 24 pieces | 13.25
Sprats in Oil | 4 tins of 450 g | 15.00
Baltic Lox | 10 packs of 500 g | 19.00
"""


def products() -> tuple[tuple[str, int, str, float], ...]:
    """Return name, category number (from 1), pack size and list price of each product."""
    rows = []
    category = 0
    for line in _CATALOGUE.strip().splitlines():
        if "|" not in line:
            category += 1
            continue
        name, pack, price = (part.strip() for part in line.split("|"))
        rows.append((name, category, pack, float(price)))
    return tuple(rows)
