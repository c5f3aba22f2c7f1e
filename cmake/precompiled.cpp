// Empty on purpose: a precompiled header needs one source file to belong to (see Rooms.cmake).
