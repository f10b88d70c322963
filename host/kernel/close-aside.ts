import { close } from "node:fs";

/** Closes the descriptor in the thread pool. Errors are ignored: the descriptor is released in any case. */
export function closeAside(fd: number): void {
  close(fd, () => {});
}
