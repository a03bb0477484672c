#include "script.h"
int model_reply(const struct buf *request, struct buf *text, struct err *e){(void)request;(void)text;return err_set(e,EX_HARNESS,"todo");}
