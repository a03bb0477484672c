/* SPDX-License-Identifier: MIT */
#include "cuda_pipeline.h"
