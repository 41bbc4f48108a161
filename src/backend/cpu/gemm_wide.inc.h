/* Kernels of float64 and complex64 products, once per instruction set: included by gemm_loops.inc.h.
 * Four rows by one panel of columns at a time; the order of every chain is the one of gemm.h. */

#if GEMM_ISA == 512
typedef __m512d vd;
#define d_load _mm512_loadu_pd
#define d_store _mm512_storeu_pd
#define d_set1 _mm512_set1_pd
#define d_fma _mm512_fmadd_pd
#elif GEMM_ISA == 2
typedef __m256d vd;
#define d_load _mm256_loadu_pd
#define d_store _mm256_storeu_pd
#define d_set1 _mm256_set1_pd
#define d_fma _mm256_fmadd_pd
#else
typedef double vd;
#define d_load(p) (*(p))
#define d_store(p, x) (*(p) = (x))
#define d_set1(x) (x)
#define d_fma(a, b, c) RP_FMA(a, b, c)
#endif

enum { VD = sizeof(vd) / sizeof(double), DOUBLE_NR = 2 * VD };

RPI_INLINE void double_rows(const int rows, int64_t k, const double* a, int64_t a_row, int64_t a_col,
                            const double* b, int64_t b_row, double* c, int64_t ldc, int cols) {
  vd acc[4][2];
  for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = d_set1(0.0);
  for (int64_t i = 0; i < k; i++, a += a_col, b += b_row) {
    vd b0 = d_load(b), b1 = d_load(b + VD);
    for (int r = 0; r < rows; r++) {
      vd x = d_set1(a[r * a_row]);
      acc[r][0] = d_fma(x, b0, acc[r][0]);
      acc[r][1] = d_fma(x, b1, acc[r][1]);
    }
  }
  for (int r = 0; r < rows; r++) {
    double out[DOUBLE_NR];
    d_store(out, acc[r][0]);
    d_store(out + VD, acc[r][1]);
    memcpy(c + r * ldc, out, sizeof *c * (size_t)cols);
  }
}

static void rows_double(int64_t m, int64_t k, const double* a, int64_t a_row, int64_t a_col,
                        const double* b, int64_t b_row, double* c, int64_t ldc, int cols) {
  int64_t i = 0;
  for (; m - i >= 4; i += 4)
    double_rows(4, k, a + i * a_row, a_row, a_col, b, b_row, c + i * ldc, ldc, cols);
  for (; i < m; i++)
    double_rows(1, k, a + i * a_row, a_row, a_col, b, b_row, c + i * ldc, ldc, cols);
}

RPI_INLINE void complex_rows(const int rows, int64_t k, const struct rpi_c64* a, int64_t a_row,
                             int64_t a_col, const float* b, struct rpi_c64* c, int64_t ldc,
                             int cols) {
  vf re[4], im[4];
  for (int r = 0; r < rows; r++) re[r] = im[r] = v_zero();
  for (int64_t i = 0; i < k; i++, a += a_col, b += 2 * VL) {
    vf b_re = v_load(b), b_im = v_load(b + VL);
    for (int r = 0; r < rows; r++) {
      struct rpi_c64 x = a[r * a_row];
      vf x_re = v_set1(x.re);
      re[r] = v_fma(v_set1(-x.im), b_im, v_fma(x_re, b_re, re[r]));
      im[r] = v_fma(v_set1(x.im), b_re, v_fma(x_re, b_im, im[r]));
    }
  }
  for (int r = 0; r < rows; r++) {
    float out_re[VL], out_im[VL];
    v_store(out_re, re[r]);
    v_store(out_im, im[r]);
    for (int j = 0; j < cols; j++) c[r * ldc + j] = (struct rpi_c64){out_re[j], out_im[j]};
  }
}

static void rows_complex(int64_t m, int64_t k, const struct rpi_c64* a, int64_t a_row, int64_t a_col,
                         const float* b, struct rpi_c64* c, int64_t ldc, int cols) {
  int64_t i = 0;
  for (; m - i >= 4; i += 4)
    complex_rows(4, k, a + i * a_row, a_row, a_col, b, c + i * ldc, ldc, cols);
  for (; i < m; i++) complex_rows(1, k, a + i * a_row, a_row, a_col, b, c + i * ldc, ldc, cols);
}
