-- Patients in the order of a salted hash; a patient's side follows from the share of stays before and in it.
WITH patients AS (
    SELECT
        subject_id,
        any_value(anchor_year_group) AS anchor_year_group,
        count(*) AS stays,
        CASE WHEN $chronological THEN any_value(anchor_year_group) ELSE 'all' END AS stratum
    FROM cohort
    GROUP BY subject_id
),
placed AS (
    SELECT
        subject_id,
        anchor_year_group,
        -- The midpoint of the patient's own stays, so that each side gets its share on average.
        (
            sum(stays) OVER (
                PARTITION BY stratum
                ORDER BY md5(concat($seed, ':', subject_id)), subject_id
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            )
            - stays / 2
        )
        / sum(stays) OVER (PARTITION BY stratum) AS position
    FROM patients
),
sided AS (
    SELECT
        subject_id,
        CASE
            WHEN $chronological AND anchor_year_group = $test_group THEN 'test'
            WHEN $chronological AND anchor_year_group <> $shared_group THEN 'train'
            WHEN position < $train_share THEN 'train'
            WHEN position < $validation_share THEN 'validation'
            ELSE 'test'
        END AS split
    FROM placed
)
SELECT c.subject_id, c.stay_id, s.split
FROM cohort AS c
JOIN sided AS s ON s.subject_id = c.subject_id
ORDER BY c.part, c.stay_id
