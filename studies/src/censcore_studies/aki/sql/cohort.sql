-- The studied stays in an order that is the same everywhere and says nothing, cut into parts.
SELECT
    * EXCLUDE (left_out),
    (row_number() OVER (ORDER BY md5(CAST(stay_id AS VARCHAR)), stay_id) - 1) // $stays_per_part AS part
FROM stays
WHERE left_out IS NULL
ORDER BY part, stay_id
