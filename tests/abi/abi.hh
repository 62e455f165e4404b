// That a function of a vendor's header is called as hw/gpu_*.c call it: the same number of
// arguments, each and the result of the same size, whole numbers and pointers for such, floating
// point for floating point. Only the compiler looks at it: see tests/cli/abi.sh.
#include <stddef.h>
#include <stdint.h>
#include <type_traits>

template <class T> constexpr bool in_integer_register =
    std::is_integral<T>::value || std::is_enum<T>::value || std::is_pointer<T>::value;

template <class A, class B> constexpr bool same_argument =
    sizeof(A) == sizeof(B) && in_integer_register<A> && in_integer_register<B>;

template <class Ours, class Theirs> struct same_call : std::false_type {};

template <class R, class... A, class S, class... B>
struct same_call<R (*)(A...), S (*)(B...)> {
    template <bool> struct pack {};
    static constexpr bool check() {
        if constexpr (sizeof...(A) == sizeof...(B))
            return same_argument<R, S> && (same_argument<A, B> && ...);
        else
            return false;
    }
    static constexpr bool value = check();
};

// Their C function, not an overload of their own for C++.
#define CHECK(record, member, symbol)                                                              \
    static_assert(same_call<decltype(record::member), decltype(&symbol)>::value,                   \
                  #symbol " is not called as declared");
#define EQUAL(ours, theirs) static_assert((int)(ours) == (int)(theirs), #theirs);
