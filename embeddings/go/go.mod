module vendor.io/berth/core

go 1.25.0
