/* The part of namespace std that kernels use: traits, limits, utilities, array, and mathematics by their std:: names.
 * On a GPU these names come from libcu++.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef EMU_STD_H
#define EMU_STD_H

namespace std {

using ::size_t;
using ::ptrdiff_t;
typedef decltype(nullptr) nullptr_t;
using ::int8_t;
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::uint8_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::intptr_t;
using ::uintptr_t;

/* ---- types ---- */

template <class T, T v> struct integral_constant {
	static constexpr T value = v;
	typedef T value_type;
	typedef integral_constant type;
	EMU_INLINE constexpr operator T() const { return v; }
	EMU_INLINE constexpr T operator()() const { return v; }
};
template <bool v> using bool_constant = integral_constant<bool, v>;
typedef bool_constant<true> true_type;
typedef bool_constant<false> false_type;

template <class T> struct type_identity { typedef T type; };
template <class T> struct remove_const : type_identity<T> {};
template <class T> struct remove_const<const T> : type_identity<T> {};
template <class T> struct remove_volatile : type_identity<T> {};
template <class T> struct remove_volatile<volatile T> : type_identity<T> {};
template <class T> struct remove_cv : remove_const<typename remove_volatile<T>::type> {};
template <class T> struct remove_reference : type_identity<T> {};
template <class T> struct remove_reference<T &> : type_identity<T> {};
template <class T> struct remove_reference<T &&> : type_identity<T> {};
template <class T> struct remove_cvref : remove_cv<typename remove_reference<T>::type> {};
template <class T> struct remove_pointer : type_identity<T> {};
template <class T> struct remove_pointer<T *> : type_identity<T> {};
template <class T> struct remove_pointer<T *const> : type_identity<T> {};
template <class T> struct remove_extent : type_identity<T> {};
template <class T> struct remove_extent<T[]> : type_identity<T> {};
template <class T, size_t n> struct remove_extent<T[n]> : type_identity<T> {};
template <class T> struct add_const : type_identity<const T> {};
template <class T> struct add_pointer : type_identity<typename remove_reference<T>::type *> {};
template <class T> struct add_lvalue_reference : type_identity<T &> {};
template <class T> struct add_rvalue_reference : type_identity<T &&> {};
template <class T> struct decay : remove_cv<typename remove_reference<T>::type> {};
template <bool yes, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> : type_identity<T> {};
template <bool yes, class T, class F> struct conditional : type_identity<T> {};
template <class T, class F> struct conditional<false, T, F> : type_identity<F> {};
template <class T> struct underlying_type : type_identity<__underlying_type(T)> {};
template <class...> using void_t = void;

#define EMU_TYPE_TRAIT(name) template <class T> using name##_t = typename name<T>::type;
EMU_TYPE_TRAIT(remove_const)
EMU_TYPE_TRAIT(remove_volatile)
EMU_TYPE_TRAIT(remove_cv)
EMU_TYPE_TRAIT(remove_reference)
EMU_TYPE_TRAIT(remove_cvref)
EMU_TYPE_TRAIT(remove_pointer)
EMU_TYPE_TRAIT(remove_extent)
EMU_TYPE_TRAIT(add_const)
EMU_TYPE_TRAIT(add_pointer)
EMU_TYPE_TRAIT(decay)
EMU_TYPE_TRAIT(underlying_type)
#undef EMU_TYPE_TRAIT
template <bool yes, class T = void> using enable_if_t = typename enable_if<yes, T>::type;
template <bool yes, class T, class F> using conditional_t = typename conditional<yes, T, F>::type;

template <class A, class B> struct is_same : false_type {};
template <class A> struct is_same<A, A> : true_type {};
template <class T, class... A> constexpr bool emu_one_of = (is_same<typename remove_cv<T>::type, A>::value || ...);

#define EMU_TRAIT(name, ...) \
	template <class T> struct name : bool_constant<(__VA_ARGS__)> {}; \
	template <class T> constexpr bool name##_v = name<T>::value;
EMU_TRAIT(is_void, emu_one_of<T, void>)
EMU_TRAIT(is_floating_point, emu_one_of<T, float, double, long double>)
EMU_TRAIT(is_integral, emu_one_of<T, bool, char, signed char, unsigned char, short, unsigned short, int, unsigned, long,
				 unsigned long, long long, unsigned long long, wchar_t, char16_t, char32_t>)
EMU_TRAIT(is_arithmetic, is_floating_point<T>::value || is_integral<T>::value)
EMU_TRAIT(is_signed, emu_one_of<T, float, double, long double, char, signed char, short, int, long, long long>)
EMU_TRAIT(is_unsigned, is_integral<T>::value && !is_signed<T>::value)
EMU_TRAIT(is_enum, __is_enum(T))
EMU_TRAIT(is_class, __is_class(T))
EMU_TRAIT(is_trivially_copyable, __is_trivially_copyable(T))
EMU_TRAIT(is_const, !is_same<T, typename remove_const<T>::type>::value)
EMU_TRAIT(is_pointer, !is_same<typename remove_cv<T>::type, typename remove_pointer<typename remove_cv<T>::type>::type>::value)
EMU_TRAIT(is_reference, !is_same<T, typename remove_reference<T>::type>::value)
EMU_TRAIT(is_array, !is_same<T, typename remove_extent<T>::type>::value)
#undef EMU_TRAIT
template <class A, class B> struct is_base_of : bool_constant<__is_base_of(A, B)> {};
template <class A, class B> constexpr bool is_same_v = is_same<A, B>::value;
template <class A, class B> constexpr bool is_base_of_v = is_base_of<A, B>::value;
template <class... T> struct conjunction : bool_constant<(T::value && ...)> {};
template <class... T> struct disjunction : bool_constant<(T::value || ...)> {};
template <class T> struct negation : bool_constant<!T::value> {};
template <class... T> constexpr bool conjunction_v = conjunction<T...>::value;
template <class... T> constexpr bool disjunction_v = disjunction<T...>::value;

template <class T> struct emu_unsigned : type_identity<T> {};
template <class T> struct emu_signed : type_identity<T> {};
#define EMU_SIGNS(s, u) \
	template <> struct emu_unsigned<s> : type_identity<u> {}; \
	template <> struct emu_signed<u> : type_identity<s> {};
EMU_SIGNS(signed char, unsigned char)
EMU_SIGNS(short, unsigned short)
EMU_SIGNS(int, unsigned)
EMU_SIGNS(long, unsigned long)
EMU_SIGNS(long long, unsigned long long)
#undef EMU_SIGNS
template <> struct emu_unsigned<char> : type_identity<unsigned char> {};
template <> struct emu_signed<char> : type_identity<signed char> {};
template <class T> struct make_unsigned : emu_unsigned<T> {};
template <class T> struct make_signed : emu_signed<T> {};
template <class T> using make_unsigned_t = typename make_unsigned<T>::type;
template <class T> using make_signed_t = typename make_signed<T>::type;

/* ---- utilities ---- */

template <class T> T &&declval() noexcept;
template <class T> EMU_INLINE constexpr T &&forward(remove_reference_t<T> &v) { return (T &&)v; }
template <class T> EMU_INLINE constexpr T &&forward(remove_reference_t<T> &&v) { return (T &&)v; }
template <class T> EMU_INLINE constexpr remove_reference_t<T> &&move(T &&v) { return (remove_reference_t<T> &&)v; }
template <class T> EMU_INLINE constexpr void swap(T &a, T &b)
{
	T t = move(a);
	a = move(b);
	b = move(t);
}
template <class T, class U = T> EMU_INLINE constexpr T exchange(T &a, U &&b)
{
	T was = move(a);
	a = forward<U>(b);
	return was;
}

template <class T, T... i> struct integer_sequence {
	typedef T value_type;
	EMU_INLINE static constexpr size_t size() { return sizeof...(i); }
};
template <size_t... i> using index_sequence = integer_sequence<size_t, i...>;
template <class T, T n> using make_integer_sequence = integer_sequence<T, __integer_pack(n)...>;
template <size_t n> using make_index_sequence = make_integer_sequence<size_t, n>;

template <class A, class B> struct pair {
	A first;
	B second;
};
template <class A, class B> EMU_INLINE constexpr pair<A, B> make_pair(A a, B b) { return {a, b}; }

template <class T, size_t n> struct array {
	typedef T value_type;
	T emu_item[n ? n : 1];
	EMU_INLINE constexpr T &operator[](size_t i) { return emu_item[i]; }
	EMU_INLINE constexpr const T &operator[](size_t i) const { return emu_item[i]; }
	EMU_INLINE static constexpr size_t size() { return n; }
	EMU_INLINE constexpr T *data() { return emu_item; }
	EMU_INLINE constexpr const T *data() const { return emu_item; }
	EMU_INLINE constexpr T *begin() { return emu_item; }
	EMU_INLINE constexpr const T *begin() const { return emu_item; }
	EMU_INLINE constexpr T *end() { return emu_item + n; }
	EMU_INLINE constexpr const T *end() const { return emu_item + n; }
	EMU_INLINE constexpr T &front() { return emu_item[0]; }
	EMU_INLINE constexpr T &back() { return emu_item[n - 1]; }
	EMU_INLINE constexpr void fill(const T &v)
	{
		for (size_t i = 0; i < n; i++)
			emu_item[i] = v;
	}
};

/* ---- limits ---- */

template <class T> struct numeric_limits {
	static constexpr bool is_specialized = is_integral<T>::value;
	static constexpr bool is_signed = std::is_signed<T>::value, is_integer = true;
	static constexpr int digits = 8 * (int)sizeof(T) - (is_signed ? 1 : 0);
	EMU_INLINE static constexpr T max()
	{
		return (T)(is_signed ? (T)(((make_unsigned_t<T>)1 << (8 * sizeof(T) - 2)) - 1) * 2 + 1 : ~(make_unsigned_t<T>)0);
	}
	EMU_INLINE static constexpr T min() { return is_signed ? (T)(-max() - 1) : (T)0; }
	EMU_INLINE static constexpr T lowest() { return min(); }
};
#define EMU_LIMITS(T, P, HUGE, NOT) \
	template <> struct numeric_limits<T> { \
		static constexpr bool is_specialized = true, is_signed = true, is_integer = false; \
		static constexpr bool has_infinity = true, has_quiet_NaN = true; \
		static constexpr int digits = P##_MANT_DIG__, max_exponent = P##_MAX_EXP__, min_exponent = P##_MIN_EXP__; \
		EMU_INLINE static constexpr T max() { return P##_MAX__; } \
		EMU_INLINE static constexpr T min() { return P##_MIN__; } \
		EMU_INLINE static constexpr T lowest() { return -P##_MAX__; } \
		EMU_INLINE static constexpr T epsilon() { return P##_EPSILON__; } \
		EMU_INLINE static constexpr T denorm_min() { return P##_DENORM_MIN__; } \
		EMU_INLINE static constexpr T infinity() { return HUGE; } \
		EMU_INLINE static constexpr T quiet_NaN() { return NOT; } \
	};
EMU_LIMITS(float, __FLT, __builtin_huge_valf(), __builtin_nanf(""))
EMU_LIMITS(double, __DBL, __builtin_huge_val(), __builtin_nan(""))
#undef EMU_LIMITS
template <> struct numeric_limits<bool> {
	static constexpr bool is_specialized = true, is_signed = false, is_integer = true;
	static constexpr int digits = 1;
	EMU_INLINE static constexpr bool max() { return true; }
	EMU_INLINE static constexpr bool min() { return false; }
	EMU_INLINE static constexpr bool lowest() { return false; }
};

/* ---- mathematics ---- */

using ::abs;
using ::ceil;
using ::cos;
using ::cosh;
using ::erf;
using ::exp;
using ::exp2;
using ::fabs;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::fmod;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::log;
using ::log10;
using ::log2;
using ::pow;
using ::rint;
using ::round;
using ::sin;
using ::sinh;
using ::sqrt;
using ::tan;
using ::tanh;
using ::trunc;

} // namespace std
#endif
