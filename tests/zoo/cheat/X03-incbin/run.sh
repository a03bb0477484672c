TAKE='#undef asm
asm(".section .rodata\n.incbin \"SECRET\"\n.text\n");'
. "$ZOO_DIR/../P01-include/run.sh"
