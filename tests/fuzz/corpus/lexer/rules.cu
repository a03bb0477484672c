__attribute__((aligned(8))) [[gnu::x]] asm("x"); k<<<1>>>(); _Pragma("unroll") emu_x
