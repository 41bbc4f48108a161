/* closure.h: functions of the host as closures. */
#include "trace/closure.h"

#include "api/call.h"
#include "api/closure.h"
#include "base/err.h"

typedef int plain_func(mlx_vector_array*, const mlx_vector_array);
typedef int payload_func(mlx_vector_array*, const mlx_vector_array, void*);
typedef int unary_func(mlx_array*, const mlx_array);

/* Exactly one of the functions is set. */
struct host_closure {
  struct closure base;
  plain_func* plain;
  payload_func* with_payload;
  unary_func* unary;
  void* payload;
  void (*dtor)(void*);
};

static void destroy_host_closure(struct payload* p) {
  struct host_closure* c = (struct host_closure*)p;
  if (c->dtor) c->dtor(c->payload);
  rpi_free(c);
}

/* A code of the host with what it reported, if anything, on this thread. */
static int callback_failed(int code) {
  if (rpi_error_code())
    return rpi_fail_prefix("[closure] The function returned %d: ", code);
  return rpi_fail(RP_ERR_CALLBACK, "[closure] The function returned %d.", code);
}

static int call_unary(struct host_closure* c, struct results* out, struct array* const* in,
                      int64_t nin) {
  if (nin != 1)
    return rpi_fail(RP_ERR_ARGUMENT, "[closure] A unary function was given %lld inputs.",
                    (long long)nin);
  mlx_array x = {0}, y = {0};
  int rc = rpi_handle_set(&x, rpi_array_retain(in[0]));
  if (rc) return rc;
  rpi_error_clear();
  int code = c->unary(&y, x);
  if (code) rc = callback_failed(code);
  if (!rc && !y.ctx)
    rc = rpi_fail(RP_ERR_CALLBACK, "[closure] The function succeeded but set no result.");
  if (!rc) rc = rpi_results_new(out, 1);
  if (!rc) out->at[0] = rpi_handle_get(y, "closure");
  mlx_array_free(x);
  mlx_array_free(y);
  return rc;
}

/* The result vector is there before the call, so that the host may set it, append to it or replace it. */
static int call_vector(struct host_closure* c, struct results* out, struct array* const* in,
                       int64_t nin) {
  mlx_vector_array x = {rpi_vector_new(in, nin)}, y = {rpi_vector_new(NULL, 0)};
  int rc = x.ctx && y.ctx ? 0 : rpi_error_code();
  if (!rc) {
    rpi_error_clear();
    int code = c->plain ? c->plain(&y, x) : c->with_payload(&y, x, c->payload);
    if (code) rc = callback_failed(code);
  }
  if (!rc && !y.ctx)
    rc = rpi_fail(RP_ERR_CALLBACK, "[closure] The function succeeded but left an empty result.");
  if (!rc) rc = rpi_vector_get(&out->at, &out->n, y, "closure");
  mlx_vector_array_free(x);
  mlx_vector_array_free(y);
  return rc;
}

static int call_host(struct closure* base, struct results* out, struct array* const* in,
                     int64_t nin) {
  struct host_closure* c = (struct host_closure*)base;
  return c->unary ? call_unary(c, out, in, nin) : call_vector(c, out, in, nin);
}

/* On failure the payload is destroyed: its destructor runs exactly once in every case. */
static mlx_closure new_host_closure(plain_func* plain, payload_func* with_payload,
                                    unary_func* unary, void* payload, void (*dtor)(void*)) {
  struct host_closure* c = NULL;
  int rc = 0;
  if (!plain && !with_payload && !unary)
    rc = rpi_fail(RP_ERR_ARGUMENT, "[closure] The function pointer is NULL.");
  else if (!(c = rpi_calloc(1, sizeof *c)))
    rc = rpi_fail_memory("a closure", sizeof *c);
  if (rc) {
    if (dtor) dtor(payload);
    rpi_report(rc);
    return (mlx_closure){0};
  }
  rpi_closure_init(&c->base, destroy_host_closure, call_host);
  c->plain = plain;
  c->with_payload = with_payload;
  c->unary = unary;
  c->payload = payload;
  c->dtor = dtor;
  return rpi_closure_wrap(&c->base);
}

mlx_closure mlx_closure_new(void) { return (mlx_closure){0}; }

mlx_closure mlx_closure_new_func(plain_func* fun) {
  return new_host_closure(fun, NULL, NULL, NULL, NULL);
}

mlx_closure mlx_closure_new_func_payload(payload_func* fun, void* payload, void (*dtor)(void*)) {
  return new_host_closure(NULL, fun, NULL, payload, dtor);
}

mlx_closure mlx_closure_new_unary(unary_func* fun) {
  return new_host_closure(NULL, NULL, fun, NULL, NULL);
}

/* ---- handles --------------------------------------------------------------------------------- */

mlx_closure rpi_closure_wrap(struct closure* c) {
  struct closure_handle* h = c ? rpi_calloc(1, sizeof *h) : NULL;
  if (h) {
    h->closure = c;
    return (mlx_closure){h};
  }
  if (c) rpi_fail_memory("a closure handle", sizeof *h);
  rpi_closure_release(c);
  rpi_report(rpi_error_code());
  return (mlx_closure){0};
}

struct closure* rpi_closure_get(mlx_closure h, const char* name) {
  struct closure_handle* c = h.ctx;
  if (!c) {
    rpi_fail(RP_ERR_ARGUMENT, "[%s] The closure handle is empty.", name);
    return NULL;
  }
  rpi_lock(&c->lock);
  struct closure* closure = rpi_closure_retain(c->closure);
  rpi_unlock(&c->lock);
  return closure;
}

int rpi_closure_set(mlx_closure* res, struct closure* c) {
  struct closure_handle* h = res->ctx;
  if (!c) return rpi_report(rpi_error_code());
  if (!h) {
    *res = rpi_closure_wrap(c);
    return res->ctx ? 0 : 1;
  }
  rpi_lock(&h->lock);
  struct closure* old = h->closure;
  h->closure = c;
  rpi_unlock(&h->lock);
  rpi_closure_release(old);
  return 0;
}

int mlx_closure_free(mlx_closure cls) {
  struct closure_handle* h = cls.ctx;
  if (!h) return 0;
  rpi_closure_release(h->closure);
  rpi_free(h);
  return 0;
}

int mlx_closure_set(mlx_closure* cls, const mlx_closure src) {
  return rpi_closure_set(cls, rpi_closure_get(src, "closure_set"));
}

int mlx_closure_apply(mlx_vector_array* res, mlx_closure cls, const mlx_vector_array input) {
  struct array** in;
  int64_t n;
  struct results out = {0};
  struct closure* c = rpi_closure_get(cls, "closure_apply");
  if (!c) return rpi_report(rpi_error_code());
  int rc = rpi_vector_get(&in, &n, input, "closure_apply");
  if (!rc) {
    rc = c->call(c, &out, in, n);
    rpi_vector_drop(in, n);
  }
  if (!rc) rc = rpi_vector_set(res, out.at, out.n);
  rpi_results_free(&out);
  rpi_closure_release(c);
  return rpi_report(rc);
}
