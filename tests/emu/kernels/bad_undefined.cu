// launch: call grid=2 block=32 args=o
// norun
// scan: "undefined":\["[gs][a-z]*","[gs][a-z]*"\]
// Functions of the host are named by elfscan, guard refuses them.

extern "C" int system(const char *);
extern "C" char *getenv(const char *);

__global__ void call(unsigned *o)
{
	o[1] = getenv("HOME") != nullptr && system("true");
}
