package browsertest

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/node"
	"github.com/latchfree/latchfree/examples/planservice/internal/service"
	"github.com/latchfree/latchfree/examples/planservice/internal/web"
)

// The page of a replica says which one it is, what it has of what others wrote, and that it
// may be too old when the others are gone.
func TestReplicaPage(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: three replicas are started")
	}
	browser := startBrowser(t)
	services := startReplicas(t, 3)
	stop := make(chan struct{})
	server := httptest.NewServer(web.New(services[1], slog.New(slog.DiscardHandler), stop))
	defer server.Close()
	defer close(stop)
	screens := []screen{{"desktop", 1280, 800, false}, {"phone", 390, 844, true}}
	tabs := make([]*tab, len(screens))
	for i, s := range screens {
		p := open(t, browser, s, server.URL)
		p.wait(`document.querySelector("#replica")?.textContent === "replica 1"`)
		p.wait(`document.querySelector("#ready").textContent === "ready"`)
		tabs[i] = p
	}

	_, err := services[0].CreateAction(t.Context(), api.Action{Name: "elsewhere"})
	require.NoError(t, err)
	for i, p := range tabs {
		p.wait(`/^planservice-actions1[\d.]+m?sfresh$/.test(document.querySelector("#mirrors tr").textContent)`)
		assert.Equal(t, int64(3), value[int64](p, `document.querySelectorAll("#mirrors .Closed").length`))
		p.check(screens[i], "replica-fresh")
	}

	for _, i := range []int{0, 2} {
		assert.NoError(t, services[i].Close(context.Background()))
	}
	for i, p := range tabs {
		p.wait(`document.querySelector("#ready").textContent === "stale"`)
		p.wait(`document.querySelectorAll("#mirrors .Open").length === 3`)
		p.wait(`/^planservice-actions1/.test(document.querySelector("#mirrors tr").textContent)`)
		p.check(screens[i], "replica-stale")
		assert.Empty(t, p.console())
	}
	services[1].Stop()
	tabs[0].wait(`document.querySelector("#ready").textContent === "stopping"`)
}

// startReplicas starts a cluster in this process.
func startReplicas(t *testing.T, n int) []*service.Service {
	t.Helper()
	peers, err := node.FreeAddresses("127.0.0.1", n)
	require.NoError(t, err)
	services := make([]*service.Service, n)
	var all sync.WaitGroup
	for i := range services {
		folder := t.TempDir()
		all.Go(func() {
			var err error
			services[i], err = service.New(t.Context(), service.Config{Store: "clustered", NoSync: true, Log: slog.New(slog.DiscardHandler),
				Cluster: &service.Cluster{Replica: i, Peers: peers, Secret: "secret", Folder: folder, MaxLag: 2 * time.Second}})
			assert.NoError(t, err, strconv.Itoa(i))
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return services
}
