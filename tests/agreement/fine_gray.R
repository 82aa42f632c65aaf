# Fine and Gray's regression by R's survival: data_*.csv of the folder in, lines.csv out. For test_r_fine_gray.py.
# Ties: events before censored times, entry before the risk set of a later time, Breslow's partial likelihood.
if (!requireNamespace("survival", quietly = TRUE)) quit(status = 77)
suppressPackageStartupMessages(library(survival))
lines <- list()
for (file in list.files(pattern = "^data_.*csv$")) {
  case <- sub("data_(.*).csv", "\\1", file); d <- read.csv(file)
  own <- case %in% c("strata", "both"); late <- case %in% c("entry", "both")
  d$state <- factor(d$status, 0:2); d$id <- seq_len(nrow(d))
  left <- if (late) "Surv(entry, time, state)" else "Surv(time, state)"
  rows <- finegray(as.formula(paste(left, "~ x + z + site", if (own) "+ strata(site)")), d, id = id, timefix = FALSE)
  right <- if (own) "x + z + strata(site)" else "x + z"
  m <- coxph(as.formula(paste("Surv(fgstart, fgstop, fgstatus) ~", right)), rows, weights = fgwt, ties = "breslow",
             control = coxph.control(eps = 1e-14, toler.chol = 1e-16, iter.max = 60, timefix = FALSE))
  H <- basehaz(m, centered = FALSE)
  if (!own) H$strata <- "all"
  for (j in 1:2) lines[[length(lines) + 1]] <- data.frame(case, quantity = names(coef(m))[j], value = coef(m)[[j]])
  for (s in unique(as.character(H$strata))) for (t in c(0.5, 1, 2)) {
    at <- H$hazard[H$strata == s & H$time <= t]
    lines[[length(lines) + 1]] <- data.frame(case, quantity = paste0("hazard ", s, " ", t), value = if (length(at)) max(at) else 0)
  }
}
options(digits = 17)
write.csv(do.call(rbind, lines), "lines.csv", row.names = FALSE)
cat(R.version.string, "survival", as.character(packageVersion("survival")), "\n")
