package latchgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/latchfree/latchfree/atomicbreaker"
	latchgrpc "github.com/latchfree/latchfree/integrations/grpc"
)

func Example() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go server.Serve(listener)

	retries := latchgrpc.MustNewRetries(latchgrpc.RetriesConfig{MaxAttempts: 2})
	breakers := latchgrpc.MustNewBreakers(latchgrpc.BreakersConfig{})
	conn, err := grpc.NewClient(listener.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(retries.UnaryClient(), breakers.UnaryClient()),
		grpc.WithChainStreamInterceptor(breakers.StreamClient()),
	)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	client := grpc_health_v1.NewHealthClient(conn)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()

	answer, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	fmt.Println(answer.GetStatus(), err)

	server.Stop()
	for err == nil || !errors.Is(err, atomicbreaker.ErrRejected) {
		_, err = client.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	}
	fmt.Println(status.Code(err), errors.Is(err, atomicbreaker.ErrOpen))
	// Output:
	// SERVING <nil>
	// Unavailable true
}
