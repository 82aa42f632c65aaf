SELECT
    TRY_CAST(subject_id AS BIGINT) AS subject_id,
    gender,
    TRY_CAST(anchor_age AS INTEGER) AS anchor_age,
    TRY_CAST(anchor_year AS INTEGER) AS anchor_year,
    anchor_year_group,
    CASE
        WHEN TRY_CAST(subject_id AS BIGINT) IS NULL THEN 'subject_id is not a number'
        WHEN gender IS NULL OR gender NOT IN ('F', 'M') THEN 'gender is neither F nor M'
        WHEN TRY_CAST(anchor_age AS INTEGER) IS NULL OR TRY_CAST(anchor_year AS INTEGER) IS NULL
            THEN 'anchor age or year is not a number'
        WHEN TRY_CAST(anchor_age AS INTEGER) NOT BETWEEN 0 AND 120 THEN 'anchor age outside 0 to 120'
        WHEN TRY_CAST(anchor_year AS INTEGER) NOT BETWEEN 1900 AND 2500 THEN 'anchor year outside 1900 to 2500'
        WHEN anchor_year_group IS NULL THEN 'anchor year group is missing'
    END AS problem
FROM patients
