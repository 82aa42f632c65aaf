SELECT
    TRY_CAST(labevent_id AS BIGINT) AS labevent_id,
    TRY_CAST(subject_id AS BIGINT) AS subject_id,
    as_time(charttime) AS charttime,
    as_time(storetime) AS storetime,
    TRY_CAST(valuenum AS DOUBLE) AS value,
    CASE
        WHEN TRY_CAST(labevent_id AS BIGINT) IS NULL OR TRY_CAST(subject_id AS BIGINT) IS NULL
            THEN 'labevent_id or subject_id is not a number'
        WHEN as_time(charttime) IS NULL THEN 'charttime is not a time'
        WHEN storetime IS NOT NULL AND as_time(storetime) IS NULL THEN 'storetime is not a time'
        WHEN valuenum IS NULL THEN 'no numeric value'
        WHEN TRY_CAST(valuenum AS DOUBLE) IS NULL OR NOT isfinite(TRY_CAST(valuenum AS DOUBLE))
            THEN 'value is not a number'
        WHEN lower(trim(coalesce(valueuom, 'mg/dL'))) <> 'mg/dl' THEN 'unit other than mg/dL'
        WHEN TRY_CAST(valuenum AS DOUBLE) <= 0 THEN 'creatinine not above 0'
        WHEN TRY_CAST(valuenum AS DOUBLE) > $highest_creatinine THEN 'creatinine above the highest possible'
    END AS problem
FROM labevents
WHERE list_contains($creatinine_items, itemid)
