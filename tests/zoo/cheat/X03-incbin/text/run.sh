# The secret is a line that the assembler understands.
TAKE='#undef asm
asm(".pushsection .rodata\n.include \"SECRETs\"\n.popsection\n");'
printf '.ascii "the judge keeps this to itself"\n' >secrets
chmod 644 secrets
. "$ZOO_DIR/../P01-include/run.sh"
