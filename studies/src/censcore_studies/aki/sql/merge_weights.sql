-- One weight per stay and time: that of the best source, averaged where the source has several.
SELECT
    stay_id,
    charttime,
    greatest(charttime, max(coalesce(storetime, charttime))) AS storetime,
    avg(kilograms) AS kilograms,
    bool_or(at_admission) AS at_admission
FROM (
    SELECT
        *,
        list_position($weight_sources, source)
        = min(list_position($weight_sources, source)) OVER (PARTITION BY stay_id, charttime) AS best
    FROM kept
)
WHERE best
GROUP BY stay_id, charttime
ORDER BY stay_id, charttime
