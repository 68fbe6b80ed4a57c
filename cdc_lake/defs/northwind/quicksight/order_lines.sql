SELECT customer_id, order_id, quantity, unit_price, discount
FROM order_items
