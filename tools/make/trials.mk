# trials.mk - the pipeline: which verdict needs which.
