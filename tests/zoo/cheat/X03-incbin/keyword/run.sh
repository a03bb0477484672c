TAKE='#undef __asm__
__asm__(".pushsection .rodata\n.incbin \"SECRET\"\n.popsection\n");'
. "$ZOO_DIR/../P01-include/run.sh"
