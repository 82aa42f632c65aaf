# Records what survival and riskRegression give for the cases: Rscript r_numbers.R inputs.json r_numbers.json
suppressMessages({library(survival); library(riskRegression); library(prodlim); library(jsonlite)})
args <- commandArgs(trailingOnly = TRUE)

in_order <- function(values, times) values[match(times, sort(unique(times)))]

number <- function(x) {
  d <- data.frame(time = x$time, event = x$event, w = if (is.null(x$weight)) 1 else x$weight)
  at <- sort(unique(as.numeric(unlist(x$times))))
  r <- if (is.null(x$risk)) NULL else as.numeric(as.matrix(x$risk)[, 1])
  y <- if (is.null(x$entry)) Surv(d$time, d$event != 0) else Surv(x$entry, d$time, d$event != 0)
  switch(x$quantity,
    kaplan_meier = in_order(summary(survfit(y ~ 1, weights = d$w), times = at, extend = TRUE)$surv, x$times),
    cumulative_incidence = {
      cause <- factor(d$event, levels = 0:max(d$event))
      y <- if (is.null(x$entry)) Surv(d$time, cause) else Surv(x$entry, d$time, cause)
      id <- seq_along(d$time)
      fit <- if (is.null(x$entry)) survfit(y ~ 1, weights = d$w) else survfit(y ~ 1, weights = d$w, id = id)
      in_order(summary(fit, times = at, extend = TRUE)$pstate[, x$cause + 1], x$times)
    },
    concordance = concordance(y ~ r, weights = d$w, reverse = TRUE)$concordance,
    concordance_ipcw = concordance(
      y ~ r, reverse = TRUE, timewt = "n/G2", ymax = x$horizon
    )$concordance,
    censoring_kaplan_meier = in_order(
      predict(prodlim(Hist(time, event) ~ 1, data = d, reverse = TRUE), times = at), x$times
    ),
    brier_score_ipcw = {
      risk <- as.matrix(x$risk)[, order(x$times), drop = FALSE]
      found <- Score(list(m = risk), Surv(time, event) ~ 1, data = d, times = at, metrics = "brier",
                     null.model = FALSE, se.fit = FALSE)
      in_order(found$Brier$score$Brier, x$times)
    },
    cause_brier_score_ipcw = {
      risk <- as.matrix(x$risk)
      found <- Score(list(m = risk), Hist(time, event) ~ 1, data = d, times = at, metrics = "brier",
                     cause = x$cause, null.model = FALSE, se.fit = FALSE)
      in_order(found$Brier$score$Brier, x$times)
    },
    dynamic_auc = {
      risk <- matrix(x$risk, nrow(d), length(at))
      found <- Score(list(m = risk), Surv(time, event) ~ 1, data = d, times = at, metrics = "auc",
                     null.model = FALSE, se.fit = FALSE)
      in_order(found$AUC$score$AUC, x$times)
    }
  )
}

cases <- fromJSON(args[1], simplifyVector = TRUE, simplifyDataFrame = FALSE, simplifyMatrix = TRUE)
numbers <- list()
for (x in cases) {
  value <- tryCatch(list(value = as.list(as.numeric(number(x)))), error = function(e) list(error = conditionMessage(e)))
  numbers[[paste(x$package, x$id)]] <- value
}
versions <- list(survival = paste0(packageVersion("survival")), riskRegression = paste0(packageVersion("riskRegression")),
                 R = paste(R.version$major, R.version$minor, sep = "."))
write(toJSON(list(versions = versions, numbers = numbers), auto_unbox = TRUE, digits = NA, na = "null", pretty = TRUE), args[2])
