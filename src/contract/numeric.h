// Elements of any dtype as float64, and back: what the host and a GPU share.
#ifndef HONE_CONTRACT_NUMERIC_H
#define HONE_CONTRACT_NUMERIC_H

#include "hone/convert.h"

#endif
