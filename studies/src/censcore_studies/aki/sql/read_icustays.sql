SELECT
    TRY_CAST(subject_id AS BIGINT) AS subject_id,
    TRY_CAST(hadm_id AS BIGINT) AS hadm_id,
    TRY_CAST(stay_id AS BIGINT) AS stay_id,
    as_time(intime) AS intime,
    as_time(outtime) AS outtime,
    CASE
        WHEN TRY_CAST(subject_id AS BIGINT) IS NULL
            OR TRY_CAST(hadm_id AS BIGINT) IS NULL
            OR TRY_CAST(stay_id AS BIGINT) IS NULL
            THEN 'subject_id, hadm_id or stay_id is not a number'
        WHEN as_time(intime) IS NULL OR as_time(outtime) IS NULL
            THEN 'intime or outtime is not a time'
        WHEN as_time(outtime) <= as_time(intime) THEN 'outtime is not after intime'
    END AS problem
FROM icustays
