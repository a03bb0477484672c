// launch: sum grid=2 block=64 args=o,i
// Namespace std: traits, limits, utilities, array, mathematics.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

enum class colour : unsigned char { red };
struct base {};
struct derived : base { float v; };

static_assert(std::is_same_v<std::remove_cvref_t<const volatile int &>, int> && !std::is_same_v<int, unsigned>, "");
static_assert(std::is_same_v<std::conditional_t<(sizeof(int) > 2), float, void>, float>, "");
static_assert(std::is_same_v<std::underlying_type_t<colour>, unsigned char> && std::is_enum_v<colour>, "");
static_assert(std::is_base_of_v<base, derived> && std::is_class_v<base> && std::is_trivially_copyable_v<derived>, "");
static_assert(std::is_integral_v<const std::size_t> && std::is_unsigned_v<std::uint16_t> && std::is_signed_v<float>, "");
static_assert(std::is_pointer_v<float *const> && !std::is_pointer_v<float> && std::is_array_v<int[3]>, "");
static_assert(std::is_same_v<std::make_unsigned_t<int>, unsigned> && std::is_same_v<std::decay_t<int &>, int>, "");
static_assert(std::conjunction_v<std::is_integral<int>, std::negation<std::is_void<int>>>, "");
static_assert(std::numeric_limits<int>::max() == 2147483647 && std::numeric_limits<int>::min() == -2147483647 - 1, "");
static_assert(std::numeric_limits<unsigned long long>::max() == ~0ull && std::numeric_limits<signed char>::min() == -128, "");
static_assert(std::numeric_limits<std::int64_t>::max() == 9223372036854775807ll && std::numeric_limits<int>::digits == 31, "");
static_assert(std::numeric_limits<float>::digits == 24 && std::numeric_limits<double>::epsilon() == 0x1p-52, "");
static_assert(std::make_index_sequence<4>::size() == 4, "");

template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0> static __device__ int kind(T) { return 1; }
template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0> static __device__ int kind(T) { return 2; }
template <std::size_t... i> static __device__ int total(const std::array<int, 4> &a, std::index_sequence<i...>)
{
	return (a[i] + ...);
}

__global__ void sum(unsigned *o, const unsigned *in)
{
	std::array<int, 4> a = {1, 2, 3, (int)(in[threadIdx.x] % 16)};
	int x = 3, y = std::exchange(x, 5), z = 0;
	std::swap(x, y);
	for (int v : a)
		z += v;
	bool ok = x == 3 && y == 5 && z == 6 + a[3] && total(a, std::make_index_sequence<4>()) == z &&
		  kind(1.0f) == 1 && kind(1) == 2 && std::fabs(-2.0f) == 2.0f && std::sqrt(9.0) == 3.0 &&
		  std::isinf(std::numeric_limits<float>::infinity()) && std::isnan(std::numeric_limits<float>::quiet_NaN());
	atomicAdd(&o[1], 1u);
	if (!ok && atomicAdd(&o[0], 1u) == 0)
		o[2] = 1;
}
