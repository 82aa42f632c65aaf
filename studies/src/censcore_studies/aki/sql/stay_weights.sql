-- Weights of each stay. For the criterion the first admission weight holds from two hours before admission;
-- as a feature a weight is known only from when it was charted.
SELECT
    c.part,
    c.stay_id,
    date_diff('second', c.intime, w.charttime) AS at_s,
    date_diff('second', c.intime, w.storetime) AS stored_s,
    CASE
        WHEN w.at_admission
            AND row_number() OVER (PARTITION BY c.stay_id, w.at_admission ORDER BY w.charttime) = 1
            THEN least(-7200, at_s)
        ELSE at_s
    END AS holds_from_s,
    w.kilograms
FROM cohort AS c
JOIN weights AS w ON w.stay_id = c.stay_id
ORDER BY c.part, c.stay_id, w.charttime
