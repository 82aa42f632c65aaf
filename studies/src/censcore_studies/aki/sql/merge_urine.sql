-- One volume per stay and time: all urine items less the irrigant.
SELECT
    stay_id,
    charttime,
    greatest(charttime, max(coalesce(storetime, charttime))) AS storetime,
    sum(volume) AS volume
FROM kept
GROUP BY stay_id, charttime
ORDER BY stay_id, charttime
