// What the peers' programs share: the folder of shapes, the clock, the lines that they print.
module berth.local/allocators/contest

go 1.24
