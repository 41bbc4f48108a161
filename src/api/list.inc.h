/* A list behind a handle, written once for every kind of item. The including file defines
 *
 *   LIST    the name without mlx_, e.g. vector_int
 *   ITEM    what is stored          VALUE   what the interface passes     DATA   a list of VALUEs
 *   int take_item(ITEM* out, VALUE v, const char* name)   makes an item of a value, or raises
 *   void keep_item(ITEM), drop_item(ITEM)                 count a reference up and down
 *
 * and struct LIST { struct lock lock; RPI_VEC(ITEM) v; }. Gets: the public functions except get,
 * and find_item, read_items, new_list, set_items, drop_items and free_list.
 *
 * The lock covers the three words of the vector (and its growth), never the making or dropping of
 * items: those may call the host. */
#define PASTE3(a, b, c) a##b##c
#define PASTE(a, b, c) PASTE3(a, b, c)
#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#define HANDLE PASTE(mlx_, LIST, )
#define PUBLIC(verb) PASTE(mlx_, LIST, _##verb)
#define NAME(verb) TEXT(LIST) "_" verb

static void drop_items(ITEM* at, int64_t n) {
  for (int64_t i = 0; i < n; i++) drop_item(at[i]);
  rpi_free(at);
}

static void free_list(struct LIST* l) {
  if (!l) return;
  drop_items(l->v.at, l->v.n);
  rpi_free(l);
}

/* Memory for n items (at least one, so that NULL means failure). */
static ITEM* new_items(size_t n, const char* name) {
  ITEM* at = n > (size_t)1 << 46 ? NULL : rpi_alloc((n + !n) * sizeof *at);
  if (!at) rpi_fail_memory(name, (unsigned long long)n * sizeof *at);
  return at;
}

/* Items made of the caller's values; NULL after raising. */
static ITEM* take_items(DATA data, size_t n, const char* name) {
  if (n && !data) {
    rpi_fail(RP_ERR_ARGUMENT, "[%s] The data pointer is NULL.", name);
    return NULL;
  }
  ITEM* at = new_items(n, name);
  for (size_t i = 0; at && i < n; i++)
    if (take_item(&at[i], data[i], name)) {
      drop_items(at, (int64_t)i);
      return NULL;
    }
  return at;
}

static int fail_empty(const char* name) {
  return rpi_fail(RP_ERR_ARGUMENT, "[%s] The list handle is empty.", name);
}

static int64_t count_items(struct LIST* l) {
  rpi_lock(&l->lock);
  int64_t n = l->v.n;
  rpi_unlock(&l->lock);
  return n;
}

/* A snapshot: items with references of the caller's. */
static int read_items(ITEM** out, int64_t* count, struct LIST* l, const char* name) {
  if (!l) return fail_empty(name);
  for (int64_t room = count_items(l);;) {
    ITEM* at = new_items((size_t)room, name);
    if (!at) return rpi_error_code();
    rpi_lock(&l->lock);
    int64_t n = l->v.n;
    for (int64_t i = 0; i < n && n <= room; i++) keep_item(at[i] = l->v.at[i]);
    rpi_unlock(&l->lock);
    if (n <= room) {
      *out = at;
      *count = n;
      return 0;
    }
    rpi_free(at); /* it grew meanwhile */
    room = n;
  }
}

/* A list over the items, which are taken, also on failure. */
static struct LIST* new_list(ITEM* at, int64_t n) {
  struct LIST* l = rpi_calloc(1, sizeof *l);
  if (!l) {
    rpi_fail_memory("a list", sizeof *l);
    drop_items(at, n);
    return NULL;
  }
  l->v.at = at;
  l->v.n = l->v.cap = n;
  return l;
}

/* Replace the items of *res, or make it. The items are taken; NULL passes a failure on. */
static int set_items(HANDLE* res, ITEM* at, int64_t n) {
  struct LIST* l = res->ctx;
  if (!at) return rpi_error_code();
  if (!l) {
    l = new_list(at, n);
    if (!l) return rpi_error_code();
    res->ctx = l;
    return 0;
  }
  rpi_lock(&l->lock);
  ITEM* old = l->v.at;
  int64_t nold = l->v.n;
  l->v.at = at;
  l->v.n = l->v.cap = n;
  rpi_unlock(&l->lock);
  drop_items(old, nold);
  return 0;
}

static int append_items(struct LIST* l, ITEM* at, int64_t n, const char* name) {
  if (!at) return rpi_error_code();
  rpi_lock(&l->lock);
  int is_full = rpi_vec_reserve(&l->v, l->v.n + n);
  if (!is_full) {
    for (int64_t i = 0; i < n; i++) l->v.at[l->v.n + i] = at[i];
    l->v.n += n;
  }
  rpi_unlock(&l->lock);
  if (is_full) {
    drop_items(at, n);
    return rpi_fail_memory(name, (unsigned long long)n * sizeof *at);
  }
  rpi_free(at);
  return 0;
}

/* Item `index` with a reference of the caller's. */
static int find_item(ITEM* out, struct LIST* l, size_t index, const char* name) {
  if (!l) return fail_empty(name);
  rpi_lock(&l->lock);
  size_t n = (size_t)l->v.n;
  if (index < n) keep_item(*out = l->v.at[index]);
  rpi_unlock(&l->lock);
  if (index < n) return 0;
  return rpi_fail(RP_ERR_INDEX, "[%s] Index %zu is outside of a list of %zu.", name, index, n);
}

static HANDLE make(ITEM* at, size_t n) {
  HANDLE h = {0};
  rpi_report(set_items(&h, at, (int64_t)n));
  return h;
}

HANDLE PUBLIC(new)(void) { return make(new_items(0, NAME("new")), 0); }

HANDLE PUBLIC(new_data)(DATA data, size_t size) {
  return make(take_items(data, size, NAME("new_data")), size);
}

HANDLE PUBLIC(new_value)(VALUE val) { return make(take_items(&val, 1, NAME("new_value")), 1); }

int PUBLIC(set)(HANDLE* vec, const HANDLE src) {
  ITEM* at = NULL;
  int64_t n = 0;
  int rc = read_items(&at, &n, src.ctx, NAME("set"));
  return rpi_report(rc ? rc : set_items(vec, at, n));
}

int PUBLIC(set_data)(HANDLE* vec, DATA data, size_t size) {
  return rpi_report(set_items(vec, take_items(data, size, NAME("set_data")), (int64_t)size));
}

int PUBLIC(set_value)(HANDLE* vec, VALUE val) {
  return rpi_report(set_items(vec, take_items(&val, 1, NAME("set_value")), 1));
}

int PUBLIC(append_data)(HANDLE vec, DATA data, size_t size) {
  const char* name = NAME("append_data");
  if (!vec.ctx) return rpi_report(fail_empty(name));
  return rpi_report(append_items(vec.ctx, take_items(data, size, name), (int64_t)size, name));
}

int PUBLIC(append_value)(HANDLE vec, VALUE val) {
  const char* name = NAME("append_value");
  if (!vec.ctx) return rpi_report(fail_empty(name));
  return rpi_report(append_items(vec.ctx, take_items(&val, 1, name), 1, name));
}

size_t PUBLIC(size)(HANDLE vec) { return vec.ctx ? (size_t)count_items(vec.ctx) : 0; }

int PUBLIC(free)(HANDLE vec) {
  free_list(vec.ctx);
  return 0;
}
