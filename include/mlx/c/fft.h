/* Discrete Fourier transforms, computed in complex64.
 *
 * `n` is the length that the input is cut or zero-padded to along each axis; for the inverse real
 * transforms it is that of the output. With no `n` the extents are used, with no `axes` all of them
 * (the last two in the 2-d forms). An axis that repeats, a length below 1, or counts that differ
 * are errors. */
#ifndef MLX_C_FFT_H
#define MLX_C_FFT_H

#include <stddef.h>

#include "mlx/c/array.h"
#include "mlx/c/stream.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Where the factor 1/n goes: on the inverse, split as 1/sqrt(n) on both, or on the forward
 * transform. */
typedef enum mlx_fft_norm_ {
  MLX_FFT_NORM_BACKWARD,
  MLX_FFT_NORM_ORTHO,
  MLX_FFT_NORM_FORWARD
} mlx_fft_norm;

/* Complex ----------------------------------------------------------------------------------- */

/* Along one axis, over two, over several; result complex64. */
int mlx_fft_fft(mlx_array* res, const mlx_array a, int n, int axis, mlx_fft_norm norm,
                const mlx_stream s);
int mlx_fft_fft2(mlx_array* res, const mlx_array a, const int* n, size_t n_num, const int* axes,
                 size_t axes_num, mlx_fft_norm norm, const mlx_stream s);
int mlx_fft_fftn(mlx_array* res, const mlx_array a, const int* n, size_t n_num, const int* axes,
                 size_t axes_num, mlx_fft_norm norm, const mlx_stream s);

int mlx_fft_ifft(mlx_array* res, const mlx_array a, int n, int axis, mlx_fft_norm norm,
                 const mlx_stream s);
int mlx_fft_ifft2(mlx_array* res, const mlx_array a, const int* n, size_t n_num, const int* axes,
                  size_t axes_num, mlx_fft_norm norm, const mlx_stream s);
int mlx_fft_ifftn(mlx_array* res, const mlx_array a, const int* n, size_t n_num, const int* axes,
                  size_t axes_num, mlx_fft_norm norm, const mlx_stream s);

/* Real -------------------------------------------------------------------------------------- */

/* Real input; the last transformed axis has n/2 + 1 outputs. */
int mlx_fft_rfft(mlx_array* res, const mlx_array a, int n, int axis, mlx_fft_norm norm,
                 const mlx_stream s);
int mlx_fft_rfft2(mlx_array* res, const mlx_array a, const int* n, size_t n_num, const int* axes,
                  size_t axes_num, mlx_fft_norm norm, const mlx_stream s);
int mlx_fft_rfftn(mlx_array* res, const mlx_array a, const int* n, size_t n_num, const int* axes,
                  size_t axes_num, mlx_fft_norm norm, const mlx_stream s);

/* The inverse, with float32 output. The default length of the last axis is 2 (m - 1) for m
 * inputs. */
int mlx_fft_irfft(mlx_array* res, const mlx_array a, int n, int axis, mlx_fft_norm norm,
                  const mlx_stream s);
int mlx_fft_irfft2(mlx_array* res, const mlx_array a, const int* n, size_t n_num, const int* axes,
                   size_t axes_num, mlx_fft_norm norm, const mlx_stream s);
int mlx_fft_irfftn(mlx_array* res, const mlx_array a, const int* n, size_t n_num, const int* axes,
                   size_t axes_num, mlx_fft_norm norm, const mlx_stream s);

/* Frequencies ------------------------------------------------------------------------------- */

/* The frequencies of the outputs of a transform of length `n`, samples `d` apart; float32. */
int mlx_fft_fftfreq(mlx_array* res, int n, double d, const mlx_stream s);
int mlx_fft_rfftfreq(mlx_array* res, int n, double d, const mlx_stream s);

/* Move frequency 0 to the middle, and back. No axes means all. */
int mlx_fft_fftshift(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,
                     const mlx_stream s);
int mlx_fft_ifftshift(mlx_array* res, const mlx_array a, const int* axes, size_t axes_num,
                      const mlx_stream s);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
