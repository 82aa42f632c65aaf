-- Irrigant that went in is subtracted, whatever the sign it was charted with.
SELECT
    TRY_CAST(stay_id AS BIGINT) AS stay_id,
    as_time(charttime) AS charttime,
    as_time(storetime) AS storetime,
    TRY_CAST(itemid AS BIGINT) AS itemid,
    CASE
        WHEN list_contains($irrigant_items, itemid) THEN -abs(TRY_CAST(value AS DOUBLE))
        ELSE TRY_CAST(value AS DOUBLE)
    END AS volume,
    CASE
        WHEN TRY_CAST(stay_id AS BIGINT) IS NULL THEN 'stay_id is not a number'
        WHEN as_time(charttime) IS NULL THEN 'charttime is not a time'
        WHEN storetime IS NOT NULL AND as_time(storetime) IS NULL THEN 'storetime is not a time'
        WHEN value IS NULL THEN 'no volume'
        WHEN TRY_CAST(value AS DOUBLE) IS NULL OR NOT isfinite(TRY_CAST(value AS DOUBLE))
            THEN 'volume is not a number'
        WHEN lower(trim(coalesce(valueuom, 'mL'))) <> 'ml' THEN 'unit other than mL'
        WHEN TRY_CAST(value AS DOUBLE) < 0 AND NOT list_contains($irrigant_items, itemid) THEN 'negative urine'
        WHEN abs(TRY_CAST(value AS DOUBLE)) > $highest_urine THEN 'volume above the highest possible'
    END AS problem
FROM outputevents
WHERE list_contains($urine_items, itemid) OR list_contains($irrigant_items, itemid)
