#ifndef BERTH_VERSION_H
#define BERTH_VERSION_H

/* The version of the build; scripts/setup/product.mjs sets it. */
#ifndef BERTH_VERSION
#define BERTH_VERSION "development"
#endif

/* The commit of a release; native/build.sh sets it. */
#ifndef BERTH_BUILD
#define BERTH_BUILD "development"
#endif

#endif
