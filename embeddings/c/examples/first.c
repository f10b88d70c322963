#include <berth_core.h>
#include <stdio.h>

int main(void)
{
    struct berth_range ranges[1], masks[1];
    berth_range_parse("10.0.0.0/24", ranges);
    berth_range_parse("10.0.0.0-10.0.0.1", masks);
    struct berth_shape shape = {ranges, 1, masks, 1};
    struct berth_core *core = berth_core_open();
    struct berth_pool pool;
    if (core == NULL || berth_pool_create(core, &shape, &pool) < 0)
        return 1;

    struct berth_ip ip;
    char text[BERTH_IP_TEXT];
    if (berth_pool_allocate(&pool, BERTH_ROUND_ROBIN, 0, &ip) == 1)
        printf("%s is %s\n", berth_ip_format(&ip, text), berth_pool_test(&pool, &ip) == 1 ? "used" : "free");
    berth_core_close(core);
    return 0;
}
