/* Kernels on packed weights, once per instruction set: included by gemm_loops.inc.h.
 *
 * VL rows of W are read as words and transposed in registers, so that a vector holds the same word of
 * VL rows, then the same value of VL rows, and each lane follows the chain of its own output. */

#define VALUE_MASK(bits) ((1 << (bits)) - 1)

/* The window of one block of VL rows: VL groups of scales, VL words of weights. */
struct qblock {
  vf scale[VL], bias[VL], word[VL];
};

RPI_INLINE vf load_scales(const void* p, int64_t i, int n, int dtype) {
  if (RPI_LIKELY(dtype == RPI_FLOAT16)) return load_any(p, i, n, RPI_FLOAT16);
  if (dtype == RPI_FLOAT32) return load_any(p, i, n, RPI_FLOAT32);
  return load_any(p, i, n, RPI_BFLOAT16);
}

/* out[g] holds scale g of VL rows. */
RPI_INLINE void transpose_scales(vf out[VL], const void* p, int64_t first_row, int rows,
                                 int64_t row_groups, int64_t g, int n, int dtype) {
  for (int r = 0; r < VL; r++)
    out[r] = load_scales(p, (first_row + (r < rows ? r : rows - 1)) * row_groups + g, n, dtype);
  transpose(out);
}

RPI_INLINE void load_window(struct qblock* blk, const struct rpi_qrows* q, int64_t first, int rows,
                            int64_t g, int n) {
  transpose_scales(blk->scale, q->scales, first, rows, q->row_groups, g, n, q->dtype);
  transpose_scales(blk->bias, q->biases, first, rows, q->row_groups, g, n, q->dtype);
}

/* Value j of every word, as floats. */
RPI_INLINE vf value_of(vi words, const int j, const int bits) {
  vi v = j ? v_shift(words, j * bits) : words;
#if GEMM_ISA == 512
  if (bits == 4) /* a lookup takes the low 4 bits of every lane: no mask, no conversion */
    return _mm512_permutexvar_ps(
        v, _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
#endif
  return v_from_int((j + 1) * bits == 32 ? v : v_and(v, VALUE_MASK(bits)));
}

/* The values of one word of nb blocks against x[values][mx]. */
RPI_INLINE void apply_word(const int mx, const int nb, const int bits, const struct qblock* blk, int g,
                           int word, const float* x, vf acc[8][4]) {
  vi v[4];
#pragma GCC unroll 4
  for (int b = 0; b < nb; b++) v[b] = v_load_bits(&blk[b].word[word]);
#pragma GCC unroll 8
  for (int j = 0; j < 32 / bits; j++) {
#pragma GCC unroll 4
    for (int b = 0; b < nb; b++) {
      vf w = v_fma(value_of(v[b], j, bits), blk[b].scale[g], blk[b].bias[g]);
#pragma GCC unroll 8
      for (int r = 0; r < mx; r++) acc[r][b] = v_fma(v_set1(x[j * mx + r]), w, acc[r][b]);
    }
  }
}

/* Rows are read side by side, which the processor's own prefetcher does not follow: ask for the next
 * rows, which lie in one piece behind these, as many bytes at a time as are being used up. */
RPI_INLINE void prefetch_bytes(const void* p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) RPI_PREFETCH((const char*)p + i);
}

RPI_INLINE void prefetch_scales(const struct rpi_qrows* q, int64_t row, int rows) {
  int64_t item = q->dtype == RPI_FLOAT32 ? 4 : 2, at = row * q->row_groups * item;
  prefetch_bytes((const char*)q->scales + at, rows * q->row_groups * item);
  prefetch_bytes((const char*)q->biases + at, rows * q->row_groups * item);
}

/* Where the blocks of VL rows start and how many rows they have; past the end, the last row again. */
struct qspan {
  int64_t first;
  int from[4], count[4];
};

RPI_INLINE void apply_window(const int mx, const int nb, const int bits, struct qblock* blk,
                             const struct qspan* at, const struct rpi_qrows* q, int64_t word, int nw,
                             int group_shift, int64_t g0, const float* x, vf acc[8][4]) {
  prefetch_bytes(q->w + (at->first + nb * VL) * q->row_words + word * nb * VL,
                 (int64_t)sizeof *q->w * nb * VL * nw);
  for (int b = 0; b < nb; b++)
    load_transposed(blk[b].word, q->w, (at->first + at->from[b]) * q->row_words + word, q->row_words,
                    at->count[b], nw, RPI_FLOAT32);
  for (int i = 0; i < nw; i++)
    apply_word(mx, nb, bits, blk, (int)(((word + i) >> group_shift) - g0), i,
               x + (word + i) * (32 / bits) * mx, acc);
}

RPI_INLINE void skinny_q_blocks(const int mx, const int nb, const int bits, int m, int64_t first,
                                int rows, int64_t k, const float* x, const struct rpi_qrows* q,
                                float* c, int64_t ldc) {
  vf acc[8][4];
  struct qblock blk[4];
  struct qspan at = {.first = first};
  int group_words = q->group * bits / 32, group_shift = bits == 4 ? 2 : 3; /* a power of two */
  int64_t groups = k / q->group;
  while (1 << group_shift < group_words) group_shift++;
  for (int b = 0; b < nb; b++) {
    at.from[b] = b * VL < rows ? b * VL : rows - 1;
    at.count[b] = at_most(rows - at.from[b], VL);
    for (int r = 0; r < mx; r++) acc[r][b] = v_zero();
  }
  prefetch_scales(q, first + nb * VL, nb * VL);
  for (int64_t g = 0; g < groups; g += VL) {
    int ng = at_most(groups - g, VL);
    /* The last window starts early where it can, so that its scales are whole vectors too. */
    int early = groups >= VL ? VL - ng : 0;
    for (int b = 0; b < nb; b++)
      load_window(&blk[b], q, first + at.from[b], at.count[b], g - early, ng + early);
    int64_t word = g * group_words, end = word + ng * group_words;
    for (; word < end; word += VL)
      apply_window(mx, nb, bits, blk, &at, q, word, at_most(end - word, VL), group_shift, g - early,
                   x, acc);
  }
  for (int r = 0; r < mx; r++)
    for (int b = 0; b < nb; b++)
      if (r < m && b * VL < rows)
        v_store_part(c + r * ldc + b * VL, acc[r][b], at_most(rows - b * VL, VL));
}

#define SKINNY_Q(bits)                                                                             \
  RPI_INLINE void skinny_##bits(const int mx, int m, int64_t n, int64_t k, const float* x,         \
                                const struct rpi_qrows* q, float* c, int64_t ldc) {                \
    const int step = BLOCKS(mx) * VL;                                                              \
    for (int64_t j = 0; j < n; j += step)                                                          \
      skinny_q_blocks(mx, BLOCKS(mx), bits, m, j, at_most(n - j, step), k, x, q, c + j, ldc);      \
  }                                                                                                \
  static void skinny_rows_##bits(int m, int64_t n, int64_t k, const float* x,                      \
                                 const struct rpi_qrows* q, float* c, int64_t ldc) {               \
    switch (rpi_gemm_skinny_rows(m)) {                                                             \
      case 1: skinny_##bits(1, m, n, k, x, q, c, ldc); break;                                      \
      case 2: skinny_##bits(2, m, n, k, x, q, c, ldc); break;                                      \
      case 4: skinny_##bits(4, m, n, k, x, q, c, ldc); break;                                      \
      default: skinny_##bits(8, m, n, k, x, q, c, ldc); break;                                     \
    }                                                                                              \
  }
SKINNY_Q(4)
SKINNY_Q(8)

static void skinny_q(int m, int64_t n, int64_t k, const float* x, const struct rpi_qrows* q, float* c,
                     int64_t ldc) {
  if (q->bits == 4)
    skinny_rows_4(m, n, k, x, q, c, ldc);
  else
    skinny_rows_8(m, n, k, x, q, c, ldc);
}

/* ---- weights as float32 ---------------------------------------------------------------------- */

/* Values 8 j ... of 32, which lie in 4 * bits bytes: read as the 8 bytes that hold them. */
RPI_INLINE void dequantize_8(float* dst, const uint8_t* p, const int j, const int bits, float scale,
                             float bias) {
  const int first = bits * j, last = 4 * bits - 8, at = first < last ? first : last;
  uint64_t all;
  memcpy(&all, p + at, sizeof all); /* little-endian, as the format */
  all >>= 8 * (first - at);
#if GEMM_ISA == 0
  for (int i = 0; i < 8; i++)
    dst[i] = RP_FMAF((float)(int)(all >> (i * bits) & VALUE_MASK(bits)), scale, bias);
#else
  const __m256i lo = _mm256_setr_epi64x(0, bits, 4 * bits, 5 * bits);
  const __m256i hi = _mm256_setr_epi64x(2 * bits, 3 * bits, 6 * bits, 7 * bits);
  __m256i v = _mm256_set1_epi64x((long long)all);
  __m256 a = _mm256_castsi256_ps(_mm256_srlv_epi64(v, lo));
  __m256 b = _mm256_castsi256_ps(_mm256_srlv_epi64(v, hi));
  v = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
  v = _mm256_and_si256(v, _mm256_set1_epi32(VALUE_MASK(bits)));
  _mm256_storeu_ps(dst, _mm256_fmadd_ps(_mm256_cvtepi32_ps(v), _mm256_set1_ps(scale),
                                        _mm256_set1_ps(bias)));
#endif
}

RPI_INLINE void dequantize_bits(float* dst, const uint8_t* p, int64_t n, const int bits,
                                const float* scales, const float* biases) {
  for (int64_t i = 0; i < n; i += 32, p += 4 * bits)
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++)
      dequantize_8(dst + i + 8 * j, p, j, bits, scales[i / 32], biases[i / 32]);
}

static void dequantize(float* dst, const uint32_t* w, int64_t n, int bits, const float* scales,
                       const float* biases) {
  const uint8_t* p = (const uint8_t*)w;
  switch (bits) {
    case 2: dequantize_bits(dst, p, n, 2, scales, biases); break;
    case 3: dequantize_bits(dst, p, n, 3, scales, biases); break;
    case 4: dequantize_bits(dst, p, n, 4, scales, biases); break;
    case 5: dequantize_bits(dst, p, n, 5, scales, biases); break;
    case 6: dequantize_bits(dst, p, n, 6, scales, biases); break;
    default: dequantize_bits(dst, p, n, 8, scales, biases); break;
  }
}
