// See TaskScheduler.h: everything stands there.
