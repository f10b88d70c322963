/* The floor of every figure: what starting and ending a static executable costs by itself. */
int main(void) { return 0; }
