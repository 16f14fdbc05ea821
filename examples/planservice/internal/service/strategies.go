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
	"slices"
	"strings"

	"github.com/latchfree/latchfree/examples/planservice/api"
)

// maxAnswer is how many bytes the answer of a strategy may have, and maxChanges how many
// changes.
const (
	maxAnswer  = 1 << 20
	maxChanges = 1000
)

// PutStrategy makes an endpoint known, or gives a known one another URL.
func (s *Service) PutStrategy(st api.Strategy) (api.Strategy, error) {
	u, err := url.Parse(st.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return api.Strategy{}, invalid("the URL of a strategy is http://… or https://…")
	}
	return s.putStrategy(st)
}

func (s *Service) putStrategy(st api.Strategy) (api.Strategy, error) {
	e, err := s.strategies.Upsert(st.Name, func(old api.Strategy, exists bool) (api.Strategy, error) {
		if exists && old.URL == "" && st.URL != "" {
			return old, invalid("the strategy %q is built in", api.Direct)
		}
		return st, nil
	})
	if err != nil {
		return api.Strategy{}, err
	}
	st.Name = e.Key
	if st.URL == "" {
		return st, nil
	}
	return st, s.audit.Write(api.AuditLine{Kind: api.KindStrategy, Strategy: st.Name, URL: st.URL})
}

// Strategies returns all strategies by name.
func (s *Service) Strategies() []api.Strategy {
	var all []api.Strategy
	for e := range s.strategies.Entries() {
		all = append(all, api.Strategy{Name: e.Key, URL: e.Value.URL})
	}
	slices.SortFunc(all, func(a, b api.Strategy) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// call lets a strategy carry out a plan, and returns what it has changed. A panic is a
// failure of the strategy.
func (s *Service) call(ctx context.Context, c api.StrategyCall) (changes []api.StrategyChange, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("strategy %s panicked: %v", c.Strategy, r)
		}
	}()
	st, ok := s.strategies.Get(c.Strategy)
	switch {
	case !ok:
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
