"""Statistics of arrays: proportions, ROC curves, resampling, associations, least squares."""
