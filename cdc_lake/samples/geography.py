"""Countries with cities, streets and names of persons and companies, US states, and sales territories.

Cities and states are real; persons and companies are invented.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Country:
    """The parts from which addresses, persons and companies of a country are generated."""

    name: str
    phone: str
    street: str
    """A pattern with {street} and {number}."""
    streets: tuple[str, ...]
    cities: tuple[tuple[str, str, str | None], ...]
    """City, postal code, region."""
    first_names: tuple[str, ...]
    last_names: tuple[str, ...]
    trades: tuple[str, ...]
    """Patterns of company names, with {name}."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _cities(text: str) -> tuple[tuple[str, str, str | None], ...]:
    rows = [entry.strip().split("|") for entry in text.split(",")]
    return tuple((row[0], row[1], row[2] if len(row) > 2 else None) for row in rows)


COUNTRIES = {
    country.name: country
    for country in (
        Country(
            "USA",
            "(555) 555-{:04d}",
            "{number} {street}",
            ("Alder Way", "Harbor Blvd.", "Quarry Rd.", "Second St.", "Mill Pond Ln.", "Orchard Ave."),
            _cities(
                "Boise|83702|ID, Tulsa|74103|OK, Eugene|97401|OR, Duluth|55802|MN, Reno|89501|NV, "
                "Savannah|31401|GA, Spokane|99201|WA, Madison|53703|WI, Santa Fe|87501|NM"
            ),
            _words("Walter Irene Curtis Dolores Leon Marjorie Stuart Gwen Nolan Tessa"),
            _words("Haverly Okerson Trask Blandford Quimby Ostrow Farnell Wickes Delmonte Prewitt Yarrow Gantry"),
            ("{name} Provisions", "{name} & Daughters", "{name} Corner Market", "The {name} Pantry"),
        ),
        Country(
            "Germany",
            "0{:04d}-55501",
            "{street} {number}",
            ("Lindenweg", "Am Kornmarkt", "Mühlgasse", "Bahnhofstr.", "Seeufer"),
            _cities("Bremen|28195, Kassel|34117, Ulm|89073, Erfurt|99084, Lübeck|23552, Trier|54290"),
            _words("Helga Jürgen Anke Volker Sabine Detlef Renate Gerd"),
            _words(
                "Osterholt Brinkmeier Kahlfuß Tannert Wedekamp Zellhorn Giesbach Rautenfeld Uhlweg Mertzen Dornhoff"
            ),
            ("Feinkost {name}", "{name} Großhandel", "Kaufhaus {name}", "{name} & Söhne"),
        ),
        Country(
            "France",
            "55.50.{:04d}",
            "{number}, {street}",
            ("rue des Tanneurs", "quai de la Loire", "place du Marché", "avenue des Tilleuls"),
            _cities("Rennes|35000, Dijon|21000, Angers|49000, Nîmes|30000, Rouen|76000, Tours|37000"),
            _words("Odile Thierry Mireille Gaston Solange Yves Colette Armand"),
            _words(
                "Vauquelin Bressolles Tardieu Montcharrat Lescaut Dufayel Pradines Quesnay Ormesson Jaubert Celestin"
            ),
            ("Épicerie {name}", "Maison {name}", "{name} et fils", "Aux Halles {name}"),
        ),
        Country(
            "Brazil",
            "(55) 555-{:04d}",
            "{street}, {number}",
            ("Rua das Palmeiras", "Av. do Porto", "Rua da Serra", "Travessa Azul"),
            _cities("Curitiba|80010-000|PR, Recife|50010-000|PE, Santos|11010-000|SP, Salvador|40010-000|BA"),
            _words("Joana Caetano Luciana Renato Vitória Anselmo"),
            _words("Tavorense Pirajá Bragalta Nogueirão Sampaiva Furtacor Itajubense Monterrão Cajuíra"),
            ("Mercado {name}", "{name} Importadora", "Empório {name}"),
        ),
        Country(
            "UK",
            "(0155) 555-{:04d}",
            "{number} {street}",
            ("Chandler's Row", "Priory Lane", "Weavers Yard", "Beacon Hill"),
            _cities("Leeds|LS1 4AP, Bristol|BS1 5TR, Norwich|NR2 1DH, Exeter|EX1 1HS"),
            _words("Nigel Prudence Alistair Hilary Rupert Maud"),
            _words("Thornaby Wexcombe Ludgrove Pennifold Ashmarsh Dunthorpe Kilverton"),
            ("{name} Fine Foods", "{name} Grocers", "{name} & Co."),
        ),
        Country(
            "Spain",
            "(91) 555-{:04d}",
            "{street}, {number}",
            ("Calle del Olivar", "Paseo del Río", "Plaza Vieja"),
            _cities("Zaragoza|50001, Granada|18001, Bilbao|48001"),
            _words("Begoña Ramiro Inés Fermín"),
            _words("Valdecillo Orozuela Medrandas Quintarosa Berrocal"),
            ("Ultramarinos {name}", "Bodegas {name}", "{name} Hermanos"),
        ),
        Country(
            "Mexico",
            "(5) 555-{:04d}",
            "{street} {number}",
            ("Calle Jacaranda", "Av. del Maíz", "Callejón del Sol"),
            _cities("Puebla|72000, Oaxaca|68000, Mérida|97000"),
            _words("Ximena Rogelio Citlali Efraín"),
            _words("Zarcoyán Tepalcate Ixtlero Cuauhtira Xochitepan"),
            ("Abarrotes {name}", "La Cocina de {name}", "Tienda {name}"),
        ),
        Country(
            "Italy",
            "055-55{:04d}",
            "{street} {number}",
            ("Via dei Gelsi", "Corso Alto", "Piazza Nuova"),
            _cities("Parma|43100, Verona|37121, Lecce|73100"),
            _words("Ornella Sandro Fiorenza Livio"),
            _words("Bertacchi Voltolina Scarpazza Gambellini"),
            ("Gastronomia {name}", "Fratelli {name}", "Drogheria {name}"),
        ),
        Country(
            "Canada",
            "(604) 555-{:04d}",
            "{number} {street}",
            ("Maple Ct.", "Lakeshore Dr.", "Timber Trail"),
            _cities("Halifax|B3H 1A1|NS, Regina|S4P 2C8|SK, Kelowna|V1Y 6N2|BC"),
            _words("Gordon Elspeth Marcel Noreen"),
            _words("Fraserly Kenwick Boisclair Strathmuir"),
            ("{name} Trading Post", "{name} General Store", "Marché {name}"),
        ),
        Country(
            "Austria",
            "0{:04d}-5550",
            "{street} {number}",
            ("Kirchplatz", "Donaulände", "Schlossgasse"),
            _cities("Linz|4020, Villach|9500, Bregenz|6900"),
            _words("Traudl Leopold Vroni Alois"),
            _words("Haslgruber Pichlmoser Trattnegg"),
            ("{name} Delikatessen", "Markthalle {name}"),
        ),
        Country(
            "Sweden",
            "08-555 {:04d}",
            "{street} {number}",
            ("Norra Ängen", "Hamngatan", "Björkstigen"),
            _cities("Uppsala|S-753 10, Kalmar|S-392 31, Umeå|S-903 26"),
            _words("Gunilla Torsten Ebba Sixten"),
            _words("Lindmarken Sjöstrand Almbacka"),
            ("{name} Livs", "{name} Handel", "{name} Bröd & Kaffe"),
        ),
        Country(
            "Japan",
            "(03) 5555-{:04d}",
            "{number} {street}",
            ("Kawabata", "Sakuragi", "Minato-dori"),
            _cities("Kobe|650-0001, Nagoya|460-0008"),
            _words("Haruka Kenji Aiko Daisuke"),
            _words("Morisaki Takehana Uedagawa"),
            ("{name} Shokuhin", "{name} Trading", "{name} Store"),
        ),
    )
}

REGIONS = ("Coast", "Mountain", "Lakes", "Gulf")

TERRITORIES = tuple(
    (region, name)
    for region, names in enumerate(
        (
            "Astoria Newport Bangor Salem Camden Groton Mystic Nantucket Hampton Beaufort Ocracoke Monterey "
            "Eureka Ventura Carmel Tacoma Everett Belmar Dover",
            "Durango Missoula Bozeman Ogden Provo Laramie Telluride Flagstaff Taos Elko Sandpoint Cody Aspen "
            "Moab Casper",
            "Oswego Erie Sandusky Saginaw Petoskey Kenosha Ashland Marquette Muskegon Racine",
            "Galveston Biloxi Pensacola Mobile Tampa Sarasota Lafayette Gulfport Destin",
        ),
        start=1,
    )
    for name in names.split()
)
"""Region number and name of each territory."""

US_STATES = tuple(
    (abbreviation, name.replace("_", " "), region)
    for region, states in (
        (
            "east",
            "CT:Connecticut DC:District_of_Columbia DE:Delaware MA:Massachusetts MD:Maryland ME:Maine "
            "NH:New_Hampshire NJ:New_Jersey NY:New_York PA:Pennsylvania RI:Rhode_Island VT:Vermont",
        ),
        (
            "midwest",
            "IA:Iowa IL:Illinois IN:Indiana KS:Kansas MI:Michigan MN:Minnesota MO:Missouri "
            "ND:North_Dakota NE:Nebraska OH:Ohio SD:South_Dakota WI:Wisconsin",
        ),
        (
            "south",
            "AL:Alabama AR:Arkansas FL:Florida GA:Georgia KY:Kentucky LA:Louisiana MS:Mississippi "
            "NC:North_Carolina OK:Oklahoma SC:South_Carolina TN:Tennessee TX:Texas VA:Virginia "
            "WV:West_Virginia",
        ),
        (
            "west",
            "AK:Alaska AZ:Arizona CA:California CO:Colorado HI:Hawaii ID:Idaho MT:Montana NM:New_Mexico "
            "NV:Nevada OR:Oregon UT:Utah WA:Washington WY:Wyoming",
        ),
    )
    for abbreviation, name in (state.split(":") for state in states.split())
)
"""Abbreviation, name and part of the country."""
