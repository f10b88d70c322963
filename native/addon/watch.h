#ifndef BERTH_WATCH_H
#define BERTH_WATCH_H

#include "arguments.h"

napi_value addon_watch(napi_env env, napi_callback_info info);
napi_value addon_unwatch(napi_env env, napi_callback_info info);

#endif
