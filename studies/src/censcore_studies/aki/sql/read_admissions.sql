SELECT
    TRY_CAST(subject_id AS BIGINT) AS subject_id,
    TRY_CAST(hadm_id AS BIGINT) AS hadm_id,
    as_time(admittime) AS admittime,
    as_time(dischtime) AS dischtime,
    as_time(deathtime) AS deathtime,
    CASE
        WHEN TRY_CAST(subject_id AS BIGINT) IS NULL OR TRY_CAST(hadm_id AS BIGINT) IS NULL
            THEN 'subject_id or hadm_id is not a number'
        WHEN as_time(admittime) IS NULL THEN 'admittime is not a time'
        WHEN dischtime IS NOT NULL AND as_time(dischtime) IS NULL THEN 'dischtime is not a time'
        WHEN deathtime IS NOT NULL AND as_time(deathtime) IS NULL THEN 'deathtime is not a time'
    END AS problem
FROM admissions
