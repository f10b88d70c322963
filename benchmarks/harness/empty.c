/* The floor of every figure: the cost of starting and ending a static executable. */
int main(void) { return 0; }
