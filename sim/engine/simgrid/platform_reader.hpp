// This module loads a platform file by SimGrid. Programs open it in a child process, since SimGrid
// stays in a process for good and ends it where a file is wrong.
#pragma once

// Writes to the file descriptor `to`, a line each:
//   host NAME            all hosts, in SimGrid's order
//   prop KEY VALUE       of the last host; KEY has no blank
//   line BANDWIDTH PIPE NAME   a link, before the first way that crosses it; PIPE: 1, not shared
//   way FROM TO LATENCY LINE...   hosts and lines by their numbers; no lines: no way leads there
//   wrong MESSAGE        and nothing more
//   stopped FROM TO      SimGrid gave up on this way, or on the file (-1 -1), and nothing more
//   end
// Besides, what SimGrid says on standard error goes there. Does not return.
extern "C" [[noreturn]] void stepsim_read_platform(const char* file, int to);
