#include <berth_core.h>
#include <stdio.h>

int main(void)
{
    struct berth_core *core = berth_core_open();
    struct berth_range range, gateway;
    berth_range_parse("10.0.0.0/24", &range);
    berth_range_parse("10.0.0.0-10.0.0.1", &gateway);
    struct berth_pool pool;
    int status = berth_pool_create(core, &(struct berth_shape){&range, 1, &gateway, 1}, &pool);
    struct berth_ip ip;
    char text[BERTH_IP_TEXT];
    if (status == 0 && berth_pool_allocate(&pool, BERTH_ROUND_ROBIN, 0, &ip) == 1)
        printf("%s %d\n", berth_ip_format(&ip, text), berth_pool_claim(&pool, &ip) == BERTH_TAKEN);
    berth_core_close(core);
    return status == 0 ? 0 : 1;
}
