// Two container registries, into which tests publish. "registry serve FILE" is distribution without the stores of
// clouds. "registry referrers ADDRESS" keeps all in memory, and knows what distribution does not: the API of referrers.
package main

import (
	"log"
	"net"
	"net/http"
	"os"

	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	_ "github.com/distribution/distribution/v3/registry/auth/token"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	withReferrers "github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "referrers" {
		listener, err := net.Listen("tcp", os.Args[2])
		if err != nil {
			log.Fatal(err)
		}
		log.Print("listening on ", listener.Addr())
		log.Fatal(http.Serve(listener, withReferrers.New(withReferrers.WithReferrersSupport(true))))
	}
	if registry.RootCmd.Execute() != nil {
		os.Exit(1)
	}
}
