// Checks a Go module as the proxy of modules would: "modzip PATH VERSION FOLDER" writes its archive to standard output,
// and fails if path, version, names or sizes are not those of a module.
package main

import (
	"log"
	"os"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("modzip PATH VERSION FOLDER")
	}
	version := module.Version{Path: os.Args[1], Version: os.Args[2]}
	if err := zip.CreateFromDir(os.Stdout, version, os.Args[3]); err != nil {
		log.Fatal(err)
	}
}
