SELECT stay_id, unnest(range(0, exit_s, $step_s)) AS at_s FROM part_cohort
