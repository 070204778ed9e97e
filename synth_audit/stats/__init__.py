"""Statistics of arrays: proportions, ROC curves, resampling, distributions, bounds on epsilon."""
