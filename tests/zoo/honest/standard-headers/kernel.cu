/* Traits and limits choose the path at compile time. */
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

template <class T, class = std::enable_if_t<std::is_floating_point<T>::value>>
__device__ static T add(T a, T b)
{
	if constexpr (std::is_same_v<T, float> && std::numeric_limits<T>::digits == 24)
		return a + b;
	else
		return b - -a;
}

template <class F> __device__ static void each(int n, F &&f)
{
	std::remove_reference_t<F> g = std::forward<F>(f);
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		g(i);
}

extern "C" __global__ void add_traits(const float *x, const float *y, float *out, int n)
{
	static_assert(std::is_integral<std::int32_t>::value && std::numeric_limits<int>::max() == 2147483647, "int");
	each(n, [=](int i) { out[i] = add(x[i], y[i]); });
}
