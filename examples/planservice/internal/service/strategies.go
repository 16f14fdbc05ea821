package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

// maxAnswer is how many bytes the answer of a strategy may have, and maxChanges how many
// changes.
const (
	maxAnswer  = 1 << 20
	maxChanges = 1000
)

// CreateStrategy makes an endpoint known.
func (s *Service) CreateStrategy(ctx context.Context, st api.Strategy) (api.Stored[api.Strategy], error) {
	if err := checkURL(st); err != nil {
		return api.Stored[api.Strategy]{}, err
	}
	e, err := s.set.Strategies.Create(ctx, st.Name, st)
	return s.storedStrategy(e, err)
}

// PutStrategy gives a strategy that has the version another URL.
func (s *Service) PutStrategy(ctx context.Context, name string, version uint64, st api.Strategy) (api.Stored[api.Strategy], error) {
	err := errors.Join(sameName(name, &st.Name), checkURL(st))
	if e, failed := s.set.Strategies.Get(name); err == nil && failed == nil && e.Value.URL == "" {
		err = invalid("the strategy %q is built in", api.Direct)
	}
	if err != nil {
		return api.Stored[api.Strategy]{}, err
	}
	e, err := s.set.Strategies.Update(ctx, name, version, st)
	return s.storedStrategy(e, err)
}

func checkURL(st api.Strategy) error {
	u, err := url.Parse(st.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return invalid("the URL of a strategy is http://… or https://…")
	}
	return nil
}

// Strategy returns a strategy.
func (s *Service) Strategy(name string) (api.Stored[api.Strategy], error) {
	e, err := s.set.Strategies.Get(name)
	return wireStrategy(e), err
}

// Strategies returns all strategies by name.
func (s *Service) Strategies() []api.Stored[api.Strategy] {
	return list(s.set.Strategies, wireStrategy)
}

// storedStrategy writes to the trail that a strategy has got a version.
func (s *Service) storedStrategy(e state.Entry[api.Strategy], err error) (api.Stored[api.Strategy], error) {
	stored := wireStrategy(e)
	if err == nil {
		err = s.audit.Write(api.AuditLine{Kind: api.KindStrategy, Strategy: e.Name, Version: e.Version, URL: e.Value.URL})
	}
	return stored, err
}

func wireStrategy(e state.Entry[api.Strategy]) api.Stored[api.Strategy] {
	e.Value.Name = e.Name
	return api.Stored[api.Strategy]{Version: e.Version, Value: e.Value}
}

// configureStrategies makes the built-in strategy and those of Config known. Others may do
// the same at this moment.
func (s *Service) configureStrategies(ctx context.Context) error {
	if _, err := s.set.Strategies.Create(ctx, api.Direct, api.Strategy{Name: api.Direct}); err != nil && !errors.Is(err, state.ErrExists) {
		return err
	}
	for _, st := range s.config.Strategies {
		if err := s.configureStrategy(ctx, st); err != nil {
			return fmt.Errorf("strategy %q: %w", st.Name, err)
		}
	}
	return nil
}

func (s *Service) configureStrategy(ctx context.Context, st api.Strategy) error {
	for {
		was, err := s.Strategy(st.Name)
		switch {
		case err == nil && was.Value.URL == st.URL:
			return nil
		case err == nil:
			_, err = s.PutStrategy(ctx, st.Name, was.Version, st)
		default:
			_, err = s.CreateStrategy(ctx, st)
		}
		if !errors.Is(err, state.ErrExists) && !errors.Is(err, state.ErrConflict) {
			return err
		}
	}
}

// call lets a strategy carry out a plan, and returns what it has changed. A panic is a
// failure of the strategy.
func (s *Service) call(ctx context.Context, c api.StrategyCall) (changes []api.StrategyChange, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("strategy %s panicked: %v", c.Strategy, r)
		}
	}()
	e, err := s.set.Strategies.Get(c.Strategy)
	st := e.Value
	switch {
	case err != nil:
		return nil, fmt.Errorf("strategy %s is unknown", c.Strategy)
	case st.URL == "":
		return onePerAction(c), nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.StrategyTimeout)
	defer cancel()
	body, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, st.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode < 200 || response.StatusCode > 299:
		return nil, fmt.Errorf("strategy %s answered %s", c.Strategy, response.Status)
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("strategy %s answered more than %d bytes", c.Strategy, maxAnswer)
	case len(bytes.TrimSpace(text)) == 0:
		return onePerAction(c), nil
	}
	var answer api.StrategyAnswer
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("strategy %s answered no JSON: %w", c.Strategy, err)
	}
	if len(answer.Changes) > maxChanges {
		return nil, errors.New("strategy " + c.Strategy + " answered too many changes")
	}
	return answer.Changes, nil
}

func onePerAction(c api.StrategyCall) []api.StrategyChange {
	changes := make([]api.StrategyChange, len(c.Actions))
	for i, action := range c.Actions {
		changes[i].Action = action
	}
	return changes
}
