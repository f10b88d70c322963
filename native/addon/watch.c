/*
 * Watches descriptors on the event loop of the calling thread: one uv_poll each, one callback per readable event.
 *
 * Life of a watch: watch() creates it; unwatch() or the end of the environment (a worker that stops) closes it,
 * whichever comes first; libuv frees it one turn later. Until then an asynchronous clean-up hook makes the
 * environment wait for it.
 */
#include "watch.h"
#include <errno.h>
#include <stdlib.h>
#include <uv.h>

struct watch {
    uv_poll_t poll;
    napi_env env;
    napi_ref ready;
    napi_async_context context;
    napi_async_cleanup_hook_handle hook;
};

static const napi_type_tag watch_tag = {0xb2f1a6c04d5e4f77, 0x9c3d81e05a7b2164};

static void on_closed(uv_handle_t *handle) {
    struct watch *watch = handle->data;
    napi_remove_async_cleanup_hook(watch->hook);
    free(watch);
}

static void close_watch(struct watch *watch) {
    if (uv_is_closing((uv_handle_t *)&watch->poll)) return;
    uv_poll_stop(&watch->poll);
    napi_delete_reference(watch->env, watch->ready);
    napi_async_destroy(watch->env, watch->context);
    uv_close((uv_handle_t *)&watch->poll, on_closed);
}

static void on_environment_end(napi_async_cleanup_hook_handle hook, void *watch) {
    (void)hook;
    close_watch(watch);
}

/* An exception of the callback is uncaught, as in any other callback. */
static void on_ready(uv_poll_t *poll, int status, int events) {
    (void)events;
    struct watch *watch = poll->data;
    napi_env env = watch->env;
    napi_handle_scope scope;
    napi_value ready, receiver, error, argument;
    if (napi_open_handle_scope(env, &scope) != napi_ok) return;
    napi_get_reference_value(env, watch->ready, &ready);
    napi_get_global(env, &receiver);
    argument = number_of(env, status);
    if (napi_make_callback(env, watch->context, receiver, ready, 1, &argument, NULL) == napi_pending_exception) {
        napi_get_and_clear_last_exception(env, &error);
        napi_fatal_exception(env, error);
    }
    napi_close_handle_scope(env, scope);
    /* libuv ends a poll that saw an error, such as ENETDOWN of a packet socket; the callback has read it, and later
     * events count too. */
    if (status != 0 && !uv_is_closing((uv_handle_t *)poll)) uv_poll_start(poll, UV_READABLE, on_ready);
}

static void on_unstarted(uv_handle_t *poll) {
    free(poll->data);
}

/* Returns 0 or -errno. On failure the watch is freed, at once or, if its handle is already in the loop, by the loop. */
static int start_watch(napi_env env, struct watch *watch, int fd) {
    uv_loop_t *loop;
    int result = napi_get_uv_event_loop(env, &loop) == napi_ok ? uv_poll_init(loop, &watch->poll, fd) : -EINVAL;
    if (result != 0) {
        free(watch);
        return result;
    }
    watch->env = env;
    watch->poll.data = watch;
    result = uv_poll_start(&watch->poll, UV_READABLE, on_ready);
    if (result != 0) uv_close((uv_handle_t *)&watch->poll, on_unstarted);
    return result;
}

/* watch(fd, ready: function): object | -errno */
napi_value addon_watch(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT], handle, name;
    int fd;
    napi_valuetype type;
    if (!read_arguments(env, info, arguments, 2) || !read_int(env, arguments[0], &fd)) return NULL;
    napi_typeof(env, arguments[1], &type);
    if (type != napi_function) return refuse(env, "Argument is not a function"), NULL;
    struct watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL) return number_of(env, -ENOMEM);
    int result = start_watch(env, watch, fd);
    if (result != 0) return number_of(env, result);
    napi_create_string_utf8(env, "berth:watch", NAPI_AUTO_LENGTH, &name);
    napi_create_object(env, &handle);
    napi_type_tag_object(env, handle, &watch_tag);
    napi_wrap(env, handle, watch, NULL, NULL, NULL);
    napi_create_reference(env, arguments[1], 1, &watch->ready);
    napi_async_init(env, NULL, name, &watch->context);
    napi_add_async_cleanup_hook(env, on_environment_end, watch, &watch->hook);
    return handle;
}

/* unwatch(watch): 0, or -EINVAL when it is no watch, or not any more */
napi_value addon_unwatch(napi_env env, napi_callback_info info) {
    napi_value arguments[ARGUMENT_LIMIT];
    bool is_watch = false;
    void *watch;
    if (!read_arguments(env, info, arguments, 1)) return NULL;
    napi_check_object_type_tag(env, arguments[0], &watch_tag, &is_watch);
    if (!is_watch || napi_remove_wrap(env, arguments[0], &watch) != napi_ok) return number_of(env, -EINVAL);
    close_watch(watch);
    return number_of(env, 0);
}
