#ifndef BERTH_VERSION_H
#define BERTH_VERSION_H

/* The release, as in package.json; a test compares the two, and both with CHANGELOG.md. */
#define BERTH_VERSION "0.4.0"

/* The commit of a release; native/build.sh sets it. */
#ifndef BERTH_BUILD
#define BERTH_BUILD "development"
#endif

#endif
